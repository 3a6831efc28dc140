"""The controller as a pure state machine: events in; writes, broker requests and replies out."""
