"""ApiVersions version 5: clients name the broker that they expect (KIP-1242).

Apache Kafka 4.4 responds with the same error codes (tests/conformance/test_newest_versions.py).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.api.caller import Caller, Session
from kafka_compat.api.calls import Calls
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from kafka_compat.security.sasl.exchange import Exchange, Offer, Stage

METADATA = SimpleNamespace(
    cluster_id="this-cluster", local_id=3, finalized_features_epoch=0, feature_levels={}
)
SERVICES: Any = SimpleNamespace(
    served={ApiKey.API_VERSIONS: (0, 5)},
    emulation=None,
    metadata=METADATA,
    config=SimpleNamespace(int=lambda name: 0),
    authorizer=None,
)


async def ask(cluster_id: str | None, node_id: int, session: Session | None = None, version: int = 5) -> Any:
    request = ApiVersionsRequest(
        client_software_name="test", client_software_version="1", cluster_id=cluster_id, node_id=node_id
    )
    return await Calls(SERVICES).ask(Caller(session=session), ApiKey.API_VERSIONS, version, request)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("this-cluster", 3, ErrorCode.NONE),
        ("this-cluster", 4, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another-cluster", 3, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", 3, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("this-cluster", -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (None, 3, ErrorCode.INVALID_REQUEST),
        ("this-cluster", -1, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_client_that_expects_a_different_broker_is_rejected(
    cluster_id: str | None, node_id: int, code: ErrorCode
) -> None:
    response = await ask(cluster_id, node_id)
    assert response.error_code == code
    assert bool(response.api_keys) == (code == ErrorCode.NONE)
    assert response.finalized_features_epoch == (-1 if code else 0)


async def test_the_expected_broker_is_not_checked_before_authentication() -> None:
    exchange = Exchange(Offer({}, {}), lambda: 0, lambda: 0.0)
    session = Session()
    session.authentication = SimpleNamespace(exchange=exchange)
    assert (await ask("another-cluster", 3, session)).error_code == ErrorCode.NONE
    assert exchange.stage is Stage.HANDSHAKE
    exchange.stage = Stage.COMPLETE
    assert (await ask("another-cluster", 3, session)).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
