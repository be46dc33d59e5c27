"""Rows to slices: the only place where that happens, for tables, streams, fragments and tasks alike.

``scatter`` adds rows in any order to the slices of known edges, ``cut`` makes slices of sorted rows, ``row_slicer`` chooses between them
for a stream's batches, and ``fold`` adds a batch to existing slices. May import ``rows``, ``bounds`` and ``partials``.
"""
