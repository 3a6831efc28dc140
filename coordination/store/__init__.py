"""The metadata store: its interface, the embedded tree with its journal, and the tree of another process."""
