"""Requests independent of their transport: callers, APIs, the path to the handler, and responses."""
