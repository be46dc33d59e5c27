"""A stream engine's state as a value, and its conversion to bytes and back.

``engine_state`` is the value; ``snapshots`` writes it as one string of bytes, ``transactions`` and ``manifests`` as named values of a
state store; ``descriptions``, ``differences`` and ``code_digest`` compare queries. May import ``stores`` and what
is below them.
"""
