"""SASL authentication of clients: one module for each mechanism, and the exchange of tokens."""
