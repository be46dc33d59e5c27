"""The pipe: rows to slices, windows to ranges over slices, ranges to results; at once for tables, step by step for streams.

Data flows ``rows`` → ``ingest`` → ``stores`` → ``bounds`` and ``partials`` → results; imports go the other way. ``batch`` runs the whole
pipe over a table, ``stream`` runs it step by step, ``persistence`` exports a stream's state as values and bytes.
"""
