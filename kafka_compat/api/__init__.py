"""What a request is, whoever sends it: its caller, its API, the one path to its handler, and its response."""
