"""The pipe over a whole table: ``aggregate`` and ``over``, fragments and their assembly, blocks of time, and results as tables.

May import ``ingest``, ``partials``, ``bounds`` and ``rows``.
"""
