"""CQL: queries as text, which become tokens, a syntax tree (``grammar``), and a logical plan (:mod:`sash.plan.queries.relations`).

The structure of a query (clauses, windows, sources) is parsed here, since no dialect of SQL has it; each expression in it stays text, which
:mod:`sash.expressions` parses, so that it means the same on every carrier. Text is parsed, never evaluated. May import ``plan``,
``functions``, ``expressions`` and what is below them; knows no carrier.
"""
