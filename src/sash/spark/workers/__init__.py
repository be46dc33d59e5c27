"""What runs in Spark's Python workers, from Arrow batches to Arrow batches, and the code and order that it needs."""
