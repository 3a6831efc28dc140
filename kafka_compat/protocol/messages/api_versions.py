"""ApiVersions (API key 18): the APIs, versions and features of a broker."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response


@request(ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsRequest:
    """The first request of a connection. A broker that does not support the version responds with
    UNSUPPORTED_VERSION in version 0 (KIP-511). Version 3 adds the name of the client software. Clients that
    send version 4 accept features with minimum version 0. Version 5 names the broker that the client expects,
    by cluster ID and node ID (-1: any), so that a different broker can reject the client (KIP-1242).
    """

    client_software_name: s.String = s.field("3+", default="")
    client_software_version: s.String = s.field("3+", default="")
    cluster_id: s.NullableString = s.field("5+", default=None)
    node_id: s.Int32 = s.field("5+", default=-1)


@s.struct
class ApiVersion:
    """The first and last version of one API that a broker serves."""

    api_key: s.Int16 = 0
    min_version: s.Int16 = 0
    max_version: s.Int16 = 0


@s.struct
class SupportedFeatureKey:
    """The levels of a feature that this broker supports (KIP-584)."""

    name: s.String = s.field("3+", default="")
    min_version: s.Int16 = s.field("3+", default=0)
    max_version: s.Int16 = s.field("3+", default=0)


@s.struct
class FinalizedFeatureKey:
    """The finalized level of a feature in the cluster (KIP-584)."""

    name: s.String = s.field("3+", default="")
    max_version_level: s.Int16 = s.field("3+", default=0)
    min_version_level: s.Int16 = s.field("3+", default=0)


@response(ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsResponse:
    """The response header always has version 0, so that older clients can read it. `finalized_features_epoch`
    is -1 if it is unknown.
    """

    error_code: s.Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: s.Int32 = s.field("1+", default=0)
    supported_features: list[SupportedFeatureKey] = s.field("3+", default=[], tag=0)
    finalized_features_epoch: s.Int64 = s.field("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = s.field("3+", default=[], tag=2)
    zk_migration_ready: s.Bool = s.field("3+", default=False, tag=3)
