"""Aggregates over slices: partials as flat fields or Python objects, and their results over ranges of slices.

``column_partials`` has an aggregate's partials over a table, ``stored`` those that are stored from batch to batch, ``incremental`` those
of slices that rows are inserted into and removed from; ``ranges`` and ``tree`` compute results over ranges. May import ``rows`` and
``bounds.view``.
"""
