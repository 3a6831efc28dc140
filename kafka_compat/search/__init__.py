"""Records of a topic that somebody looks for (docs/design/decisions/0018-messages.md)."""
