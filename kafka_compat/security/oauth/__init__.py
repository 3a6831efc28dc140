"""Tokens of SASL OAUTHBEARER: what is in them, who signed them, where keys and tokens come from."""
