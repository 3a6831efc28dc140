"""DescribeCluster (API key 60): cluster id, controller and brokers (KIP-700)."""

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


@request(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Version 1 asks for brokers (endpoint_type 1) or controllers (2) (KIP-919), version 2 for fenced brokers
    too.
    """

    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+", default=False)


@struct
class DescribeClusterBroker:
    """Address of a broker on the listener that was asked."""

    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: NullableString = None
    is_fenced: Bool = field("2+", default=False)


@response(ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """`cluster_authorized_operations` is a bit field of ACL operations; the lowest int32 when not asked
    for.
    """

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -2147483648
