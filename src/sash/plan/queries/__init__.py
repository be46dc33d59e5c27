"""Queries as text, once they are planned: relations, their windows, rewrites, and what streams can bear."""
