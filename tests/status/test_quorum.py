"""The metadata quorum in snapshots, on the screen and in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafka_compat.protocol.messages.describe_quorum import ReplicaState, ResponsePartitionData
from kafka_compat.status.as_json import as_json
from kafka_compat.status.migration import ask_migration
from kafka_compat.status.quorum import quorum_of
from kafka_compat.status.screen import View, draw
from kafka_compat.status.snapshot import Migration, Quorum, QuorumReplica
from tests.status.found import snapshot

FOUND = Quorum(
    2,
    7,
    90,
    (QuorumReplica(1, True, 10, 500), QuorumReplica(2, True, 0, 0), QuorumReplica(4, False, 5, None)),
)


def test_lags_and_ages_are_relative_to_the_leader() -> None:
    answer = ResponsePartitionData(
        leader_id=2,
        leader_epoch=7,
        high_watermark=90,
        current_voters=[
            ReplicaState(replica_id=1, log_end_offset=90, last_fetch_timestamp=1000),
            ReplicaState(replica_id=2, log_end_offset=100, last_fetch_timestamp=1500),
        ],
        observers=[ReplicaState(replica_id=4, log_end_offset=95)],
    )
    assert quorum_of(answer) == FOUND


def test_a_quorum_is_part_of_the_json_output() -> None:
    assert as_json(snapshot(), ())["quorum"] is None
    found = as_json(snapshot(quorum=FOUND, is_kraft=True, controller_id=None), ())["quorum"]
    assert (found["leader_id"], found["epoch"], found["error"]) == (2, 7, None)
    assert found["replicas"][0] == {"id": 1, "is_voter": True, "lag": 10, "fetched_before_ms": 500}


class _Brokers:
    """Brokers with these settings. Broker 3 does not respond."""

    def __init__(self, settings: Mapping[int, Mapping[str, str]]) -> None:
        self._settings = settings

    def ask(self, node_id: int, key: ApiKey, **request: Any) -> Any:
        assert key is ApiKey.DESCRIBE_CONFIGS
        if node_id == 3:
            return None
        (resource,) = request["resources"]
        assert resource.resource_name == str(node_id)
        configs = [
            DescribeConfigsResourceResult(name=name, value=value)
            for name, value in self._settings[node_id].items()
            if name in resource.configuration_keys
        ]
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=configs)])


def test_a_migration_is_found_in_the_settings_of_the_brokers() -> None:
    enabled = {"zookeeper.metadata.migration.enable": "true"}
    target = {"kafka.compat.metadata.store": "quorum"}
    assert ask_migration(_Brokers({1: {}, 2: target}), (1, 2, 3)) is None
    assert ask_migration(_Brokers({1: enabled, 2: {}}), (1, 2, 3)) == Migration((1,), None)
    assert ask_migration(_Brokers({1: enabled, 2: enabled | target}), (1, 2)) == Migration((1, 2), "quorum")


def test_a_migration_is_shown_with_the_quorum() -> None:
    found = snapshot(quorum=FOUND, migration=Migration((1, 2), "quorum"), is_kraft=True, controller_id=None)
    assert as_json(found, ())["migration"] == {"brokers": [1, 2], "target": "quorum"}
    console = Console(width=120, no_color=True)
    with console.capture() as shown:
        console.print(draw(View(found), console))
    assert "leader 2, epoch 7, migration to quorum (2 brokers prepared)" in shown.get()
