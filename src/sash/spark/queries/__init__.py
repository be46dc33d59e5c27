"""Queries on batch frames: the plan of :mod:`sash.plan.queries.relations` as frames, which nothing computes before an action.

Rows carry the span of windows that they are in as two columns, as on tables (:mod:`sash.relational`); Spark joins, groups and repeats them.
"""
