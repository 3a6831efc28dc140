"""SCRAM credentials of users: validation, storage and listing, compared with Apache Kafka."""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> Plain:
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": b"x" * 32,
    }


def deletion(user: str, mechanism: int = 1) -> Plain:
    return {"name": user, "mechanism": mechanism}


def alter(pair: Pair, upsertions: list[Plain], deletions: list[Plain] | None = None) -> list[Plain]:
    request = {"upsertions": upsertions, "deletions": deletions or []}
    results: list[Plain] = pair.same(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)["results"]
    return results


def described(pair: Pair, *users: str) -> list[Plain]:
    request = {"users": [{"name": user} for user in users]}
    results: list[Plain] = pair.same(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, request)["results"]
    return results


def test_credentials_are_stored_and_listed(pair: Pair) -> None:
    ann, bob = pair.name("ann@x y"), pair.name("bob")
    alter(pair, [upsertion(ann), upsertion(ann, 2, 8192), upsertion(bob)])
    (found,) = described(pair, ann)
    assert [item["iterations"] for item in found["credential_infos"]] == [4096, 8192]
    described(pair, ann, bob, pair.name("nobody"), "")
    described(pair, ann, ann)
    alter(pair, [upsertion(bob, 2)], [deletion(ann), deletion(bob)])
    described(pair, ann, bob)
    alter(pair, [], [deletion(ann)])
    alter(pair, [], [deletion(ann, 2)])
    described(pair, ann)


def test_invalid_credentials_are_rejected(pair: Pair) -> None:
    for mechanism, iterations in ((1, 4095), (2, 16385), (9, 4096), (0, 4096)):
        alter(pair, [upsertion(pair.name("user"), mechanism, iterations)])
    user = pair.name("user")
    alter(pair, [upsertion(user), upsertion(user)])
    alter(pair, [upsertion(user)], [deletion(user)])
    alter(pair, [upsertion("")], [])
    alter(pair, [], [deletion(user), deletion(user, 7), deletion("")])
    described(pair, user)


def test_credentials_and_quotas_of_one_user_are_independent(pair: Pair) -> None:
    user = pair.name("both")
    quotas = {
        "entries": [
            {
                "entity": [{"entity_type": "user", "entity_name": user}],
                "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False}],
            }
        ],
        "validate_only": False,
    }
    alter(pair, [upsertion(user)])
    pair.same(ApiKey.ALTER_CLIENT_QUOTAS, quotas)
    assert described(pair, user)[0]["error_code"] == 0
    alter(pair, [], [deletion(user)])
    component = {"entity_type": "user", "match_type": 0, "match": user}
    found = pair.same(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": [component], "strict": False})
    assert [item["key"] for item in found["entries"][0]["values"]] == ["producer_byte_rate"]
