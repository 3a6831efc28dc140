"""The controller as a state machine without I/O: from events to writes, broker requests and replies."""
