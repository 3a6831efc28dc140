"""The handler of broker listeners, which also serves controller listeners."""

from kafka_compat.handlers.sasl_handshake import sasl_handshake

__all__ = ["sasl_handshake"]
