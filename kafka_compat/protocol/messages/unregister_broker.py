"""UnregisterBroker (API key 64): remove a broker from the metadata of a KRaft cluster (KIP-500)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    """The ID of the broker to remove."""

    broker_id: s.Int32 = 0


@s.response(ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """The result of the removal."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
