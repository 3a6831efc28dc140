"""Sockets, frames, and the way of a request to its handler and back."""
