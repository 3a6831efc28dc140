"""Checks of handlers whose API requires a feature level. At a lower level, the API fails with
UNSUPPORTED_VERSION, as in Apache Kafka 4.4, although ApiVersions lists it.
"""

from kafka_compat.api.handler import RequestContext
from kafka_compat.errors import ErrorCode, KafkaError


def has_level(ctx: RequestContext, feature: str, level: int = 1) -> bool:
    """Return whether the finalized level of a feature is at least `level`."""
    return ctx.services.metadata.feature_level(feature) >= level


def require_level(ctx: RequestContext, feature: str, level: int = 1) -> None:
    """Raise KafkaError, which fails the whole request, unless `has_level`."""
    if not has_level(ctx, feature, level):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
