"""Assignors of consumer groups: which member reads which partition (KIP-848)."""
