"""``sash run``: a query from sources to sinks that are named by URIs, over tables or on Spark.

``locations`` are what URIs name, ``schemas`` the columns of what has none of its own, ``files`` finite inputs as tables and results as
files; ``settings`` are the command's options, checked; ``on_tables`` and ``on_spark`` run a query; ``display`` shows how it goes.
"""
