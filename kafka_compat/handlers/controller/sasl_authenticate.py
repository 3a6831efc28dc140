"""The handler of broker listeners, which also serves controller listeners."""

from kafka_compat.handlers.sasl_authenticate import sasl_authenticate

__all__ = ["sasl_authenticate"]
