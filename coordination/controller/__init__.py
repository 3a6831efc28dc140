"""The controller: a state machine without I/O that converts events to writes, broker requests and replies."""
