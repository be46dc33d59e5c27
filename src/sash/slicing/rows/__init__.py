"""Input rows: batches of any kind, their times and keys, their order, and what aggregates read of them.

May import ``plan`` and what is below it, and no other package of ``slicing``.
"""
