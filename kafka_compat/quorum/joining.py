"""A controller that is not a voter joins the voters by itself (controller.quorum.auto.join.enable, KIP-853).

It asks the leader to add it, until it is a voter. If the voters contain its ID with another directory, its
disk was replaced, and the former voter must be removed first. The leader makes one change at a time, and adds
only voters that have caught up, so requests are repeated.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from kafka_compat.coordination.raft.values import NO_NODE
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafka_compat.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafka_compat.quorum.peer_connections import NotSupported

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.machine import RaftMachine
    from kafka_compat.quorum.peers import Peers
    from kafka_compat.quorum.requests import Local

log = logging.getLogger(__name__)


class VoterJoining:
    """The requests of one controller."""

    def __init__(self, local: Local, machine: RaftMachine, peers: Peers, period_ms: int) -> None:
        self._local = local
        self._machine = machine
        self._peers = peers
        self._period_ms = period_ms
        self._problem = ""

    async def run(self) -> None:
        """Ask the leader, whenever this node is not a voter, until canceled."""
        while True:
            await asyncio.sleep(self._period_ms / 1000)
            request = self.next_request()
            if request is None:
                continue
            try:
                response = await self._peers.ask(self._machine.leader_id, *request)
            except (ConnectionError, MalformedRequest, NotSupported) as error:
                self._report(str(error))
                continue
            if response.error_code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER):
                self._report(response.error_message or known_code(response.error_code).name)

    def next_request(self) -> tuple[ApiKey, Any] | None:
        """Return the request that must be sent to the leader, or None."""
        machine, key = self._machine, self._local.key
        if machine.is_voter or machine.leader_id == NO_NODE or not machine.voters or not machine.hears_leader:
            return None
        former = machine.voters.get(key.node_id)
        if former is not None:
            return ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(
                cluster_id=self._local.cluster_id,
                voter_id=key.node_id,
                voter_directory_id=former.key.directory_id,
            )
        return ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(
            cluster_id=self._local.cluster_id,
            timeout_ms=self._period_ms,
            voter_id=key.node_id,
            voter_directory_id=key.directory_id,
            listeners=[
                Listener(name=name, host=host, port=port)
                for name, (host, port) in self._local.endpoints.items()
            ],
            ack_when_committed=False,
        )

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.info("Node %d is not a voter yet: %s", self._local.key.node_id, problem)
