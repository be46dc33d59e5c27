"""Slice stores: what a stream retains from step to step, behind one interface.

``slice_store`` is the interface; ``partials_only``, ``with_rows``, ``sorted_rows`` and ``in_order`` are its kinds, and ``kinds`` makes
one by its name. ``chunks`` stores slices by stretches of time, and joined slices of several stretches above them. May import ``ingest``,
``partials``, ``bounds`` and ``rows``.
"""
