"""Records of a topic that somebody looks for (docs/decisions/0018-messages.md)."""
