"""Tokens of SASL OAUTHBEARER: their content, their validation, and the sources of keys and tokens."""
