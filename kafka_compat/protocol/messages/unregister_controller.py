"""UnregisterController (API key 94): remove a controller from the metadata of a KRaft cluster (Kafka 4.4)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.request(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerRequest:
    """The ID of the controller to remove."""

    controller_id: s.Int32 = 0


@s.response(ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+")
class UnregisterControllerResponse:
    """The result of the removal."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
