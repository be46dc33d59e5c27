"""Streaming frames: the two stages of a stream, its watermark, its checkpoint and its progress; imports `batch` and below."""
