"""Access control lists: their rules (pure), their storage, and the authorizer that applies them."""
