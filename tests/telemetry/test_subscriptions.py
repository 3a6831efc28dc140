"""Client metrics subscriptions: their settings, and the combined subscription of a client."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.coordination.nodes.znodes import encode_topic_id
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.telemetry.subscriptions import DEFAULT_INTERVAL_MS, Client, Wanted, subscription, wanted

ID = UUID(int=7)
CLIENT = Client("app-1", "librdkafka", "2.6", "10.0.0.9", "4711")


def _wanted(*settings: dict[str, str], client: Client = CLIENT) -> Wanted:
    return wanted([subscription(each) for each in settings], ID, client)


def test_metrics_are_not_requested_without_subscriptions() -> None:
    assert _wanted()[1:] == ((), DEFAULT_INTERVAL_MS)


def test_all_matching_subscriptions_are_combined() -> None:
    one = {"metrics": "b.,a.", "interval.ms": "5000"}
    other = {"metrics": "a.,c.", "interval.ms": "2000"}
    others = {"metrics": "z.", "interval.ms": "100", "match": "client_id=nobody"}
    found = _wanted(one, other, others)
    assert found[1:] == (("a.", "b.", "c."), 2000)
    assert _wanted(other, one) == found
    assert _wanted(one, other, {"metrics": "*"})[1:] == (("*",), 2000)


def test_the_subscription_id_changes_with_the_subscription() -> None:
    of_all = [
        _wanted(),
        _wanted({"metrics": "a."}),
        _wanted({"metrics": "b."}),
        _wanted({"metrics": "a.", "interval.ms": "1000"}),
        wanted([subscription({"metrics": "a."})], UUID(int=8), CLIENT),
    ]
    ids = {found.subscription_id for found in of_all}
    assert len(ids) == len(of_all) and all(-(1 << 31) <= each < 1 << 31 for each in ids)


@pytest.mark.parametrize(
    "match, is_meant",
    [
        ("client_id=app-.", True),
        ("client_id=app", False),
        (" client_id = app-1 , client_software_name=lib.*", True),
        ("client_id=app-1,client_software_name=apache.*", False),
        (f"client_instance_id={encode_topic_id(ID)}", True),
        ("client_source_address=10\\.0\\..*,client_source_port=4711,client_software_version=2.6", True),
    ],
)
def test_subscriptions_match_clients_by_their_attributes(match: str, is_meant: bool) -> None:
    assert _wanted({"metrics": "a.", "match": match}).metrics == (("a.",) if is_meant else ())


def test_a_client_without_an_id_does_not_match_any_pattern() -> None:
    nameless = CLIENT._replace(client_id=None)
    assert _wanted({"metrics": "a.", "match": "client_id=.*"}, client=nameless).metrics == ()


@pytest.mark.parametrize(
    "settings, code, problem",
    [
        ({"metric": "a."}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: metric"),
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST, "between 100 and 3600000"),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST, "between 100 and 3600000"),
        ({"interval.ms": "often"}, ErrorCode.INVALID_CONFIG, "interval.ms"),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        ({"match": "user=a"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: user=a"),
        ({"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern"),
    ],
)
def test_invalid_subscriptions_are_rejected(settings: dict[str, str], code: ErrorCode, problem: str) -> None:
    with pytest.raises(KafkaError, match=problem.replace("(", "\\(")) as error:
        subscription(settings)
    assert error.value.code == code
