"""Queries step by step: rows and a watermark in, the results of the windows that ended in between out, and state that can be stored.

The relations of a step are computed as those of a table are, by :class:`~sash.relational.query_run.QueryRun`, over the rows that windows
ending in the step can have; aggregates over windows of one stream come from :mod:`sash.slicing.stream`, which keeps slices instead of rows.
"""
