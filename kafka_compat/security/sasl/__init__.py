"""SASL authentication of clients: one file per mechanism, and the exchange that carries them."""
