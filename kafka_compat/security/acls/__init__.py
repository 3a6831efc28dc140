"""Access control lists (ACLs): rules without I/O, storage, and the authorizer that applies them."""
