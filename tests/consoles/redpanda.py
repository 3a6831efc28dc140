"""Redpanda Console: its pages, topic searches and actions, compared with Apache Kafka."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.consoles.sides import Side, Sides
from tests.consoles.web import ask, records, redpanda_console

_PAGES = Path(__file__).parent / "lines/redpanda-console.txt"
_OLDEST, _RECENT, _BY_TIME = -2, -1, -4
_SEARCHES = (
    ("alpha", {"startOffset": _OLDEST, "partitionId": -1, "maxResults": 100}),
    ("alpha", {"startOffset": 4, "partitionId": 1, "maxResults": 3}),
    ("beta", {"startOffset": _OLDEST, "partitionId": -1, "maxResults": 10}),
    ("hot", {"startOffset": _OLDEST, "partitionId": -1, "maxResults": 200}),
    ("hot", {"startOffset": _RECENT, "partitionId": 2, "maxResults": 3}),
    (
        "hot",
        {
            "startOffset": _BY_TIME,
            "startTimestamp": 1_700_000_002_000,
            "partitionId": -1,
            "maxResults": 500,
            "filterInterpreterCode": base64.b64encode(b"return value.number % 5 == 0").decode(),
        },
    ),
    ("ledger", {"startOffset": _OLDEST, "partitionId": -1, "maxResults": 50}),
    ("nosuch", {"startOffset": _OLDEST, "partitionId": -1, "maxResults": 50}),
)
_RECORD = {"key": base64.b64encode(b"k").decode(), "value": base64.b64encode(b"v").decode(), "partitionId": 1}
_MADE = {"topicName": "rp-made", "partitionCount": 2, "replicationFactor": 1}
_ACTIONS: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/topics", {**_MADE, "configs": [{"name": "retention.ms", "value": "-1"}]}),
    ("POST", "/api/topics", _MADE),
    ("POST", "/api/topics", {**_MADE, "topicName": "rp-wrong", "replicationFactor": 3}),
    ("POST", "/api/topics", {**_MADE, "topicName": "rp wrong"}),
    ("POST", "/api/topics-records", {"topicNames": ["rp-made"], "records": [_RECORD] * 3}),
    (
        "POST",
        "/api/topics-records",
        {"topicNames": ["rp-made"], "compressionType": 4, "useTransactions": True, "records": [_RECORD] * 2},
    ),
    ("GET", "/api/topics/rp-made/partitions", None),
    (
        "PATCH",
        "/api/topics/rp-made/configuration",
        {"configs": [{"key": "retention.ms", "op": 0, "value": "86400000"}]},
    ),
    (
        "PATCH",
        "/api/topics/rp-made/configuration",
        {"configs": [{"key": "retention.ms", "op": 0, "value": "often"}]},
    ),
    ("GET", "/api/topics/rp-made/configuration", None),
    (
        "PATCH",
        "/api/operations/configs",
        {
            "resources": [
                {
                    "resourceType": 2,
                    "resourceName": "rp-made",
                    "configs": [{"name": "cleanup.policy", "op": 0, "value": "compact"}],
                }
            ]
        },
    ),
    (
        "PATCH",
        "/api/consumer-groups/rp-group",
        {
            "groupId": "rp-group",
            "topics": [{"topicName": "rp-made", "partitions": [{"partitionId": 1, "offset": 2}]}],
        },
    ),
    ("GET", "/api/consumer-groups/rp-group", None),
    (
        "DELETE",
        "/api/consumer-groups/rp-group/offsets",
        {"groupId": "rp-group", "topics": [{"topicName": "rp-made", "partitions": [{"partitionId": 1}]}]},
    ),
    ("DELETE", "/api/consumer-groups/rp-group", None),
    ("DELETE", "/api/consumer-groups/busy", None),
    ("DELETE", "/api/topics/rp-made/records", {"partitions": [{"partitionId": 1, "offset": 2}]}),
    ("GET", "/api/topics/rp-made/partitions", None),
    (
        "PATCH",
        "/api/operations/reassign-partitions",
        {"topics": [{"topicName": "rp-made", "partitions": [{"partitionId": 0, "replicas": [7]}]}]},
    ),
    ("DELETE", "/api/topics/rp-made", None),
    ("DELETE", "/api/topics/rp-made", None),
    ("GET", "/api/topics", None),
)
_MEANT = (
    # Our own settings, settings with different names without ZooKeeper, and the default data directory
    # differ.
    r"\[(kafka\.compat\.[\w.]+|zookeeper\.(connect|session\.timeout\.ms)|log\.dir)\]",
    # Our defaults differ.
    r"\[(broker\.id|node\.id|listeners|queued\.max\.request\.bytes)\]\.(isDefault|synonyms)",
    # Our documentation of the settings differs.
    r"\.documentation = ",
    # Redpanda Console guesses the version from the highest request versions, which for our broker are those
    # of Kafka 4.
    r"\.(version|kafkaVersion) = ",
)


def redpanda_console_differences(sides: Sides, folder: Path, *, actions: bool = True) -> list[str]:
    """Return the differences in all pages and searches, and then in the effects of actions."""
    with ExitStack() as stack:
        urls = {side.name: stack.enter_context(redpanda_console(side, folder)) for side in sides.all.values()}
        found = []
        for path in _PAGES.read_text().splitlines():
            show = functools.partial(_answer, urls, "GET", path, None)
            found += sides.differences(path, show, _MEANT)
        for topic, search in _SEARCHES:
            find = functools.partial(_records, urls, topic, search)
            found += sides.differences(f"{topic}: {search}", find)
        for method, path, body in _ACTIONS if actions else ():
            act = functools.partial(_answer, urls, method, path, body)
            found += sides.differences(f"{method} {path}: {body}", act, _MEANT, once=method != "GET")
    return found


def _answer(urls: Mapping[str, str], method: str, path: str, body: Any, side: Side) -> str:
    return ask(urls[side.name], method, path, body)


def _records(urls: Mapping[str, str], topic: str, search: dict[str, Any], side: Side) -> str:
    return records(urls[side.name], topic, **search)
