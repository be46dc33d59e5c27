"""The pipe: rows to slices, windows to ranges over slices, ranges to results; at once for tables, step by step for streams."""
