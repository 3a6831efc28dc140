"""Search the records of a topic (docs/design/decisions/0018-messages.md)."""
