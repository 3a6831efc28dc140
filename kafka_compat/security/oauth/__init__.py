"""Tokens of SASL OAUTHBEARER: content, validation, and the sources of keys and tokens."""
