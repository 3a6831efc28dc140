"""Record batches: headers, all message formats, compression and checks, without files."""
