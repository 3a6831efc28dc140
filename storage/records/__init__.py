"""Record batches: headers, all message formats, compression and validation. No I/O."""
