"""DescribeCluster (API key 60): cluster ID, controller and brokers (KIP-700)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Version 1 selects brokers (endpoint_type 1) or controllers (2) (KIP-919); version 2 can include fenced
    brokers.
    """

    include_cluster_authorized_operations: s.Bool = False
    endpoint_type: s.Int8 = s.field("1+", default=1)
    include_fenced_brokers: s.Bool = s.field("2+", default=False)


@s.struct
class DescribeClusterBroker:
    """The address of a broker on the listener that received the request."""

    broker_id: s.Int32 = 0
    host: s.String = ""
    port: s.Int32 = 0
    rack: s.NullableString = None
    is_fenced: s.Bool = s.field("2+", default=False)


@s.response(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """`cluster_authorized_operations`: a bit field of ACL operations, or the lowest int32 if not
    requested.
    """

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    endpoint_type: s.Int8 = s.field("1+", default=1)
    cluster_id: s.String = ""
    controller_id: s.Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: s.Int32 = -2147483648
