"""Batch frames: a request checked against a frame, and the frame that each strategy becomes; imports `workers` and `language`."""
