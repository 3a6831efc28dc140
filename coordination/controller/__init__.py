"""The controller: a state machine without I/O that turns events into writes, broker requests and replies."""
