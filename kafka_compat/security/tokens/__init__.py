"""Delegation tokens (KIP-48, KIP-373): temporary credentials of a user."""
