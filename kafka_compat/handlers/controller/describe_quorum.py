"""The handler of broker listeners, which also serves controller listeners."""

from kafka_compat.handlers.describe_quorum import describe_quorum

__all__ = ["describe_quorum"]
