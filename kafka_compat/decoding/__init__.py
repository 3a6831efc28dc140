"""Keys and values of records as text that people read (docs/design/decisions/0018-messages.md)."""
