"""Batches and records: headers, all formats, compression, checks; no files."""
