"""Every choice of a strategy, one module per question: each returns a decision with its reasons.

Execution takes the decision and does not choose again; ``sash.explain`` prints it. ``rolling_choice`` decides for one array,
``slicing_choice`` and ``range_choice`` for tables, ``store_choice`` for streams in one process, ``spark_choice`` and ``stream_choice`` for
Spark. ``rows_needed`` is the rule that several of them share.
"""
