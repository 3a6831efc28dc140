"""The metadata store: its interface, the embedded tree with its journal, and access from other processes."""
