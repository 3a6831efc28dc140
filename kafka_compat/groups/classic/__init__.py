"""Consumer groups that use the classic protocol: members, generations and assignments."""
