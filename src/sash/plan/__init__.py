"""Requests, logical plans, and the choice of how to compute them.

``request`` and ``options`` hold the arguments of a call, checked; ``logical`` binds them to a schema; ``choices`` decides how each engine
(one process, Spark batch, Spark streaming) computes the result, with its reasons. Pure data: nothing here reads a row. May import
``algorithms`` and everything below.
"""
