"""ApiVersions (API key 18): which APIs, versions and features a broker has."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, field, request, response, struct


@request(ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """The first request of a connection. A broker that does not know the version answers with
    UNSUPPORTED_VERSION in version 0 (KIP-511); version 3 names the client software. Version 4 is that of
    clients that read a feature with minimum version 0.
    """

    client_software_name: String = field("3+", default="")
    client_software_version: String = field("3+", default="")


@struct
class ApiVersion:
    """The versions that a broker serves of one API, both ends inclusive."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class SupportedFeatureKey:
    """The levels of a feature that this broker has (KIP-584)."""

    name: String = field("3+", default="")
    min_version: Int16 = field("3+", default=0)
    max_version: Int16 = field("3+", default=0)


@struct
class FinalizedFeatureKey:
    """The level of a feature that the whole cluster has agreed on (KIP-584)."""

    name: String = field("3+", default="")
    max_version_level: Int16 = field("3+", default=0)
    min_version_level: Int16 = field("3+", default=0)


@response(ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """Always sent with response header version 0, so that a client that expected less can read it.
    `finalized_features_epoch` is -1 while unknown.
    """

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Int32 = field("1+", default=0)
    supported_features: list[SupportedFeatureKey] = field("3+", default=[], tag=0)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = field("3+", default=[], tag=2)
    zk_migration_ready: Bool = field("3+", default=False, tag=3)
