"""Voters that are added and removed while the quorum runs (KIP-853)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.raft.values import ReplicaKey, Voter
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafka_compat.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafka_compat.quorum.metadata_directory import write_bootstrap, write_properties
from tests.cluster.embedded import until
from tests.quorum.cluster import CLUSTER_ID, FAST
from tests.support.ports import free_port


class _Controllers:
    """Controllers that know each other only by controller.quorum.bootstrap.servers. The first is a voter."""

    def __init__(self, directory: Path, count: int) -> None:
        self.ports = {node_id: free_port() for node_id in range(1, count + 1)}
        self.processes: dict[int, QuorumProcess] = {}
        self._directory = directory
        first = directory / "1"
        directory_id = uuid4()
        write_properties(str(first), 1, CLUSTER_ID, directory_id)
        voters = {1: Voter(ReplicaKey(1, directory_id), {"CONTROLLER": ("127.0.0.1", self.ports[1])})}
        write_bootstrap(str(first), voters, 0)

    async def start(self, node_id: int, **settings: str) -> None:
        config = BrokerConfig.from_properties(
            {
                "process.roles": "controller",
                "node.id": str(node_id),
                "controller.quorum.bootstrap.servers": ",".join(
                    f"127.0.0.1:{port}" for port in self.ports.values()
                ),
                "controller.listener.names": "CONTROLLER",
                "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
                "log.dirs": str(self._directory / str(node_id)),
                **FAST,
                "controller.quorum.fetch.timeout.ms": "2000",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        config.cluster_id = CLUSTER_ID
        process = self.processes[node_id] = QuorumProcess(config)
        await process.start()

    async def ask_leader(self, key: ApiKey, version: int, request: Any) -> ErrorCode:
        leaders = [
            node_id
            for node_id, process in self.processes.items()
            if process.node.machine.leader_id == node_id
        ]
        if not leaders:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        (leader_id,) = leaders
        client = BrokerClient("127.0.0.1", self.ports[leader_id], "test")
        response = await client.send(key, version, request)
        await client.close()
        return ErrorCode(response.error_code)

    async def add(self, node_id: int) -> ErrorCode:
        key = self.processes[node_id].node.local.key
        address = Listener(name="CONTROLLER", host="127.0.0.1", port=self.ports[node_id])
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=10_000,
            voter_id=node_id,
            voter_directory_id=key.directory_id,
            listeners=[address],
        )
        return await self.ask_leader(ApiKey.ADD_RAFT_VOTER, 1, request)

    async def remove(self, node_id: int) -> ErrorCode:
        key = self.processes[node_id].node.local.key
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=key.directory_id
        )
        return await self.ask_leader(ApiKey.REMOVE_RAFT_VOTER, 0, request)


async def test_a_quorum_grows_to_three_voters_and_loses_its_first_one(tmp_path: Path) -> None:
    controllers = _Controllers(tmp_path, 3)
    await controllers.start(1)
    machine = controllers.processes[1].node.machine
    await until(lambda: machine.leader_id == 1)
    for node_id in (2, 3):
        await controllers.start(node_id)

        # A voter is accepted only after it has caught up.
        async def is_added(node_id: int = node_id) -> bool:
            return await controllers.add(node_id) == ErrorCode.NONE

        await until(is_added)
    assert await controllers.add(2) == ErrorCode.DUPLICATE_VOTER
    assert set(machine.voters) == {1, 2, 3}
    assert await controllers.remove(1) == ErrorCode.NONE
    others = [controllers.processes[node_id].node.machine for node_id in (2, 3)]
    await until(lambda: all(each.leader_id in (2, 3) and set(each.voters) == {2, 3} for each in others))
    for process in controllers.processes.values():
        await process.stop()


async def test_controllers_join_the_voters_by_themselves_and_replace_their_former_directory(
    tmp_path: Path,
) -> None:
    controllers = _Controllers(tmp_path, 3)
    await controllers.start(1)
    machine = controllers.processes[1].node.machine
    await until(lambda: machine.leader_id == 1)
    for node_id in (2, 3):
        await controllers.start(node_id, controller_quorum_auto_join_enable="true")
    await until(lambda: set(machine.voters) == {1, 2, 3}, 60)
    former = machine.voters[3].key
    await controllers.processes[3].stop()
    shutil.rmtree(tmp_path / "3")
    await controllers.start(3, controller_quorum_auto_join_enable="true")
    await until(lambda: 3 in machine.voters and machine.voters[3].key != former, 60)
    assert machine.voters[3].key == controllers.processes[3].node.local.key
    for process in controllers.processes.values():
        await process.stop()
