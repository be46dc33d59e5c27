"""Streams from sources to sinks on Spark, for ``sash run``: frames of locations, their sinks, and one run; imports all of `spark`."""
