"""Client quotas: validation, storage and listing, compared with Apache Kafka."""

from __future__ import annotations

from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain

EXACT, DEFAULT, ANY = range(3)


def entity(**names: str | None) -> list[Plain]:
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()]


def alter(pair: Pair, who: list[Plain], validate_only: bool = False, **values: float | None) -> Plain:
    ops: list[dict[str, Any]] = [
        {"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()
    ]
    entries = [{"entity": who, "ops": ops}]
    request = {"entries": entries, "validate_only": validate_only}
    return pair.same(ApiKey.ALTER_CLIENT_QUOTAS, request)


def described(pair: Pair, *components: tuple[str, int, str | None], strict: bool = False) -> Plain:
    conditions = [
        {"entity_type": kind, "match_type": match_type, "match": match}
        for kind, match_type, match in components
    ]
    return pair.same(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": conditions, "strict": strict})


def test_quotas_are_stored_and_described(pair: Pair) -> None:
    user, client = pair.name("user ~*%"), pair.name("client")
    alter(pair, entity(user=user), producer_byte_rate=1000, request_percentage=12.5)
    alter(pair, entity(user=user, client_id=client), consumer_byte_rate=5)
    alter(pair, entity(user=user, client_id=None), controller_mutation_rate=0.5)
    alter(pair, entity(client_id=client), consumer_byte_rate=7, producer_byte_rate=8)
    alter(pair, entity(client_id=client), producer_byte_rate=None, request_percentage=None)
    alter(pair, entity(ip="127.0.0.9"), connection_creation_rate=3)
    alter(pair, entity(user=user), validate_only=True, producer_byte_rate=1)
    found = described(pair, ("user", EXACT, user), strict=True)
    (entry,) = found["entries"]
    assert {item["key"]: item["value"] for item in entry["values"]} == {
        "producer_byte_rate": 1000.0,
        "request_percentage": 12.5,
    }
    for strict in (False, True):
        described(pair, ("user", EXACT, user), strict=strict)
        described(pair, ("user", EXACT, user), ("client-id", EXACT, client), strict=strict)
        described(pair, ("user", EXACT, user), ("client-id", DEFAULT, None), strict=strict)
        described(pair, ("user", EXACT, user), ("client-id", ANY, None), strict=strict)
        described(pair, ("client-id", EXACT, client), strict=strict)
        described(pair, ("ip", EXACT, "127.0.0.9"), strict=strict)
        described(pair, ("user", EXACT, pair.name("nobody")), strict=strict)
    alter(pair, entity(ip="127.0.0.9"), connection_creation_rate=None)
    assert described(pair, ("ip", EXACT, "127.0.0.9"))["entries"] == []


def test_invalid_quotas_are_rejected(pair: Pair) -> None:
    user = pair.name("user")
    alter(pair, entity(user=user), nonsense=1)
    alter(pair, entity(user=user), connection_creation_rate=1)
    alter(pair, entity(user=user), producer_byte_rate=1.5)
    alter(pair, entity(user=""), producer_byte_rate=1)
    alter(pair, entity(group="g"), producer_byte_rate=1)
    alter(pair, entity(user=user, ip="127.0.0.1"), producer_byte_rate=1)
    alter(pair, entity(ip="no such host"), connection_creation_rate=1)
    alter(pair, entity(ip="127.0.0.1"), connection_creation_rate=0.5)
    alter(pair, [], producer_byte_rate=1)
    described(pair, ("user", EXACT, user), ("user", ANY, None))
    described(pair, ("user", ANY, None), ("ip", ANY, None))
    described(pair, ("group", ANY, None))
    described(pair, ("", ANY, None))
