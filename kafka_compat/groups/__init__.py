"""Consumer groups, as managed by the coordinator: members, generations and committed offsets."""
