"""Consumer groups as their coordinator keeps them: members, generations and committed offsets."""
