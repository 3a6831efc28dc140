"""Tokens for SASL OAUTHBEARER: contents, validation, and the sources of keys and tokens."""
