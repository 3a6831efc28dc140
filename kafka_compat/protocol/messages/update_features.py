"""UpdateFeatures (API key 57): raise or lower the cluster's finalized feature levels (KIP-584)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class FeatureUpdateKey:
    """The requested level of one feature. A level below 1 removes the feature. upgrade_type is 1 (upgrade), 2
    (safe downgrade) or 3 (unsafe downgrade).
    """

    feature: s.String = ""
    max_version_level: s.Int16 = 0
    allow_downgrade: s.Bool = s.field("0", default=False)
    upgrade_type: s.Int8 = s.field("1+", default=1)


@s.request(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Version 1 adds validate_only and upgrade_type (KIP-778)."""

    timeout_ms: s.Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: s.Bool = s.field("1+", default=False)


@s.struct
class UpdatableFeatureResult:
    feature: s.String = ""
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""


@s.response(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """In version 2 and later, all updates succeed or fail together, so there is only a top-level error."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    results: list[UpdatableFeatureResult] = s.field("0-1", default=[])
