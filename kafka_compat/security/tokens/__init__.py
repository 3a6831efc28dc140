"""Delegation tokens (KIP-48, KIP-373): credentials for a while, which stand for a user who is not asked."""
