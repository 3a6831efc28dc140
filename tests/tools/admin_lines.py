"""Command lines of the administration tools, in `lines/`. The format is described in compare.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.tools.compare import NAMES, table

TOOLS = (
    "topics",
    "get-offsets",
    "delete-records",
    "log-dirs",
    "leader-election",
    "broker-api-versions",
    "configs",
    "acls-without-authorizer",
    "reassign-partitions",
)
TABLES = {name: table(name) for name in TOOLS}
FEATURES = table("features")
"""Kafka's own command needs a new JVM for each of these lines."""
JUSTIFIED = {" +": " "}
"""Kafka's command pads all lines to the same length."""
CLUSTER = table("cluster")
"""Command lines for clusters of three brokers."""
DROPPED = table("dropped-admin")
"""Command lines with flags that exist in 3.9 and were removed in Kafka 4."""
ACLS = table("acls")
"""Command lines for brokers with an authorizer."""

_CUT = {"topic": "cut", "partition": 0, "offset": 1}


def write_files(folder: Path) -> None:
    """Write the contents of {files}."""
    (folder / "client.properties").write_text("client.id=someone\n")
    (folder / "impatient").write_text("default.api.timeout.ms=1000\nrequest.timeout.ms=900\n")
    (folder / "topic.properties").write_text("retention.ms=5000\nsegment.ms=7000\n")
    (folder / "nonsense").write_text("{")
    values: dict[str, Any] = {
        "array": [1],
        "empty": {},
        "version": {"version": 7, "partitions": []},
        "no-offset": {"version": 1, "partitions": [{"topic": "cut", "partition": 0}]},
        "wrong-type": {"partitions": [{"topic": "cut", "partition": "zero", "offset": 1}]},
        "twice": {"partitions": [_CUT, _CUT]},
        "delete": {"version": 1, "partitions": [_CUT, _CUT | {"partition": 1, "offset": -1}]},
        "too-far": {"version": 1, "partitions": [_CUT | {"offset": 1000}]},
        "unknown": {"version": 1, "partitions": [_CUT | {"topic": "none"}]},
    }
    here = {"topic": "alpha", "partition": 0, "replicas": [1]}
    plans = {
        "same": [here, here | {"partition": 1}],
        "other": [here | {"replicas": [9]}],
        "unknown-replicas": [here | {"topic": "none"}],
        "unknown-partition": [here | {"partition": 77}],
        "no-replicas": [here | {"replicas": []}],
        "twice-replicas": [here, here],
        "double": [here | {"replicas": [1, 1]}],
        "folders": [here | {"log_dirs": ["any", "any"]}],
    }
    values |= {name: {"version": 1, "partitions": partitions} for name, partitions in plans.items()}
    values["topics"] = {"version": 1, "topics": [{"topic": "alpha"}, {"topic": "beta"}]}
    values["topics-twice"] = {"version": 1, "topics": [{"topic": "alpha"}, {"topic": "alpha"}]}
    for name, value in values.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    for me in NAMES:
        topic = f"{me}-m"
        plans = {
            "move": [_place(topic, 0, [2, 3]), _place(topic, 1, [3, 1])],
            "bad": [_place(topic, 0, [2, 9])],
        }
        for name, partitions in plans.items():
            (folder / f"{me}-{name}.json").write_text(json.dumps({"version": 1, "partitions": partitions}))


def _place(topic: str, partition: int, replicas: list[int]) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas}
