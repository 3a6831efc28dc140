"""The controller as a pure machine: events in, writes and requests to brokers out."""
