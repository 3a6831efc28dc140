"""UpdateFeatures (API key 57): raise or lower finalized features of the cluster (KIP-584)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class FeatureUpdateKey:
    """The wanted level; below 1 removes the feature. upgrade_type: 1 upgrade, 2 safe and 3 unsafe
    downgrade.
    """

    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Bool = field("0", default=False)
    upgrade_type: Int8 = field("1+", default=1)


@request(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Version 1 adds validate_only and the kinds of downgrade (KIP-778)."""

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Bool = field("1+", default=False)


@struct
class UpdatableFeatureResult:
    """What became of one feature."""

    feature: String = ""
    error_code: Int16 = 0
    error_message: NullableString = ""


@response(ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """Since version 2 all changes are made or none, so only the error of the whole request is told."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    results: list[UpdatableFeatureResult] = field("0-1", default=[])
