"""Queries on tables: the logical plan of :mod:`sash.plan.queries.relations`, computed over Arrow tables in one process.

The whole sequence of relations is computed at once. A row of a relation has a *span*, the consecutive windows that it is in, so that
selection and projection touch each row once, a join intersects spans, and rows are repeated per window only where the result is. Aggregates
over windows of a stream go through :mod:`sash.slicing`. May import ``slicing`` and what is below it; knows no query text.
"""
