"""Access control lists: rules without I/O, storage, and the authorizer that applies them."""
