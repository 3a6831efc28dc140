"""Decode keys and values of records as readable text (docs/design/decisions/0018-messages.md)."""
