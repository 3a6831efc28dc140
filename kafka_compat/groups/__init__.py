"""Consumer groups: members, generations and committed offsets, as their coordinator knows them."""
