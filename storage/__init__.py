"""Log storage: record batches, segments, logs and log directories, without sockets or an event loop."""
