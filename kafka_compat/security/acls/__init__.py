"""Access control lists: what they say (pure), where they are kept, and the authorizer that obeys them."""
