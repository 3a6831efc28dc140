"""Delegation tokens (KIP-48, KIP-373): temporary credentials that stand for a user."""
