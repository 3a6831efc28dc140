"""Transport-independent handling of requests: callers, APIs, dispatch to handlers, and responses."""
