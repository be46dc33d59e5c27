"""A stream engine's state as plain data, and to bytes and back.

``engine_state`` is the value; ``snapshots`` writes it as one string of bytes, ``transactions`` and ``manifests`` as named values of a
state store; ``descriptions``, ``differences`` and ``code_digest`` tell whether two queries are the same. May import ``stores`` and what
is below them.
"""
