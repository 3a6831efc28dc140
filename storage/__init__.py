"""Bytes and files: batches, segments, logs, and the directories that hold them; no socket, no event loop."""
