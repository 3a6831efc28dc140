"""The network layer: sockets, frames, and the path of a request to its handler and of its response back."""
