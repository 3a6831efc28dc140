"""The handler of broker listeners, which also serves controller listeners."""

from kafka_compat.handlers.api_versions import api_versions

__all__ = ["api_versions"]
