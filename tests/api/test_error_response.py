"""The error responses of requests that failed as a whole, compared with Apache Kafka's own request classes.

Every served version of every API is compared with the oldest of the releases that has this version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_compat.api.error_response import error_response
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode
from kafka_compat.handlers.served import CLUSTER_SERVED, TELEMETRY_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import decode, encode
from kafka_compat.protocol.messages import request_class, response_class
from kafka_compat.protocol.schema import fields_of
from tests.conformance.wire import plain
from tests.oracle.error_response_oracle import ErrorResponseOracle
from tests.protocol.definitions import RELEASES, definitions
from tests.protocol.random_messages import RandomMessages

ALL_SERVED = {**CLUSTER_SERVED, **TELEMETRY_SERVED}

ACL_KINDS = (
    ("resource_type", 2),
    ("resource_type_filter", 2),
    ("resource_pattern_type", 3),
    ("pattern_type_filter", 3),
    ("operation", 2),
    ("permission_type", 3),
)
"""Fields that accept only certain values in Kafka's classes, each with a valid value."""


@pytest.fixture(scope="module", params=RELEASES)
def oracle(request: pytest.FixtureRequest) -> Iterator[tuple[str, ErrorResponseOracle]]:
    with ErrorResponseOracle(request.param) as running:
        yield request.param, running


def versions_of(release: str) -> list[tuple[ApiKey, int]]:
    """Return the API versions that `release` implements and no earlier release does."""
    earlier = RELEASES[: RELEASES.index(release)]

    def knows(one: str, key: ApiKey, version: int) -> bool:
        definition = definitions(one).get(request_class(key).__name__)
        return definition is not None and version in definition.versions

    return [
        (key, version)
        for key, (low, high) in ALL_SERVED.items()
        for version in range(low, high + 1)
        if knows(release, key, version) and not any(knows(one, key, version) for one in earlier)
    ]


def test_every_served_version_is_compared_with_kafka() -> None:
    compared = [pair for release in RELEASES for pair in versions_of(release)]
    served = {(key, version) for key, (low, high) in ALL_SERVED.items() for version in range(low, high + 1)}
    assert served == set(compared)
    assert len(compared) == len(set(compared))


def test_error_responses_match_those_of_kafkas_own_classes(oracle: tuple[str, ErrorResponseOracle]) -> None:
    release, kafka = oracle
    found: list[str] = []
    compared = 0
    for key, version in versions_of(release):
        for seed, (code, message) in enumerate(_failures()):
            request = _request(key, version, f"{key}/{version}/{seed}")
            theirs = kafka.ask(key, version, code, message, encode(request, version))
            response = error_response(key, version, request, code, message)
            ours = None if response is None else encode(response, version)
            compared += 1
            if _fields(key, version, ours) != _fields(key, version, theirs):
                found.append(f"{key.name} v{version}: {_fields(key, version, theirs)}, we say {response}")
    print(f"Kafka {release}: {compared} responses of {len(versions_of(release))} versions compared")
    assert found[:5] == []


def test_a_produce_request_with_acks_0_gets_no_response(oracle: tuple[str, ErrorResponseOracle]) -> None:
    _, kafka = oracle
    request: Any = RandomMessages("acks=0", full=True).message(request_class(ApiKey.PRODUCE), 9)
    request.acks = 0
    assert kafka.ask(ApiKey.PRODUCE, 9, -1, "", encode(request, 9)) is None
    assert error_response(ApiKey.PRODUCE, 9, request, ErrorCode.UNKNOWN_SERVER_ERROR) is None


def _failures() -> list[tuple[ErrorCode, str]]:
    return [(code, text) for code in STANDARD_MESSAGES for text in ("", "because of the tests")]


def _request(key: ApiKey, version: int, seed: str) -> Any:
    """Return a random request in which no topic, partition or producer occurs twice, because Kafka stores
    some of them in sets."""
    request: Any = RandomMessages(seed, full=True).message(request_class(key), version)
    if key is ApiKey.PRODUCE:
        request.acks = -1
    _name_apart(request, iter(range(1_000_000)))
    return request


def _name_apart(message: Any, numbers: Iterator[int]) -> None:
    names = [spec.name for spec in fields_of(type(message))]
    for name, value in ACL_KINDS:
        if name in names and ("permission_type" in names):
            setattr(message, name, value)
    for name in names:
        value = getattr(message, name)
        if name in ("name", "topic", "topic_name", "group_id") and isinstance(value, str):
            setattr(message, name, f"{value}{next(numbers)}")
        elif name in ("producer_id", "partition_index", "index", "partition"):
            setattr(message, name, next(numbers))
        elif name in ("resource_types", "acknowledge_types"):
            # Kafka does not store these bytes in a set, so they may repeat.
            continue
        elif name == "security_protocol":
            message.security_protocol = 0
        elif isinstance(value, list) and value and hasattr(value[0], "__fields__"):
            for element in value:
                _name_apart(element, numbers)
        elif isinstance(value, list) and value and isinstance(value[0], int):
            value[:] = [next(numbers) for _ in value]


def _fields(key: ApiKey, version: int, body: bytes | None) -> Any:
    """Return the fields of a response. Arrays are sorted, because Kafka fills some of them from hash maps."""
    if body is None:
        return None
    response: Any = decode(response_class(key), version, body, exact=True)
    if key is ApiKey.FETCH:
        for topic in response.responses:
            for partition in topic.partitions:
                # For the same versions, Kafka 3.9 returns null and Kafka 4.1 returns empty records.
                partition.records = partition.records or b""
    return _in_order(plain(response))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_order, value), key=repr)
    return value
