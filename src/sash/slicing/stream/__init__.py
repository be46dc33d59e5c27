"""Streams step by step: the operator (a thin public shell), the engine behind it, and the engine behind a state store.

``lateness`` decides which rows are too late, ``due`` whether a step is needed, ``window_manager`` which windows a step emits,
``revisions`` which of them have changed, ``emission`` and ``pages`` write them as tables; ``trail`` is for trailing windows. May import
every other package of ``slicing``.
"""
