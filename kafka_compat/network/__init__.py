"""The network layer: sockets, frames, and the path from a request to its handler and back to the client."""
