"""Aggregates over slices: partials as fields or objects, and their results over ranges of slices.

``columns`` has an aggregate's partials over a table, ``stored`` those that are kept from batch to batch, ``incremental`` those of slices
whose rows come and go; ``ranges`` and ``tree`` answer ranges. May import ``rows`` and ``bounds.view``.
"""
