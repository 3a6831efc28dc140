"""Handlers see of a broker what their type says, so a test hands in just that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from kafka_compat.broker.services import BrokerServices
from kafka_compat.cluster.membership import ClusterMembership
from kafka_compat.errors import ErrorCode
from kafka_compat.membership.membership import Membership
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.protocol import codec, headers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from kafka_compat.handlers.services import ClusterServices, Services
    from kafka_compat.network.connection import Connection


def brokers_offer_everything(
    broker: BrokerServices[Membership], member: BrokerServices[ClusterMembership]
) -> tuple[Services, ClusterServices]:
    """Never called: the type checker says whether a broker has what handlers ask for."""
    return broker, member


class Groups:
    """All that Heartbeat needs."""

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        return ErrorCode.NONE if (group_id, generation_id, member_id) == ("g", 3, "m") else ErrorCode(25)


class Answers:
    """A connection that keeps what it was answered."""

    peer_host = "127.0.0.1"

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def respond(self, parts: list[bytes]) -> None:
        self.sent += parts


def test_a_handler_is_served_with_a_double() -> None:
    services = SimpleNamespace(served={ApiKey.HEARTBEAT: (0, 4)}, groups=Groups())
    dispatcher = Dispatcher(services)
    for member_id, code in (("m", 0), ("stranger", 25)):
        connection = Answers()
        request = HeartbeatRequest(group_id="g", generation_id=3, member_id=member_id)
        header = headers.encode_request_header(headers.RequestHeader(ApiKey.HEARTBEAT, 4, 7, "test"))
        frame = memoryview(header + codec.encode(request, 4))
        assert dispatcher.dispatch(cast("Connection", connection), frame)
        (answer,) = connection.sent
        found, position = headers.decode_response_header(ApiKey.HEARTBEAT, 4, answer, 4)
        assert found == 7
        assert codec.decode(HeartbeatResponse, 4, answer, position, exact=True).error_code == code
