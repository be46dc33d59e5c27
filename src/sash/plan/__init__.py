"""What is requested, what it means over the columns that are there, and every choice of how to compute it.

``request`` and ``options`` hold the arguments of a call, checked; ``logical`` binds them to a schema; ``choices`` decides how each carrier
computes the result, with its reasons. Pure data: nothing here reads a row. May import ``algorithms`` and everything below.
"""
