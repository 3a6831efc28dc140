"""Who clients are and what they may do: so far the users' stored credentials."""
