"""The pipe: rows to slices, windows to ranges over slices, ranges to results; at once for tables, step by step for streams.

Data flows ``rows`` → ``ingest`` → ``stores`` → ``bounds`` and ``partials`` → results; imports go the other way. ``batch`` is the whole way
over a table, ``stream`` the same way step by step, ``persistence`` a stream's state as plain data and bytes.
"""
