"""What is said to Spark in its own terms: SQL text, column types, aggregates as its expressions; imports nothing else of this package."""
