"""Records of the store on their way into the log: proposed here if this node leads, or sent to the leader.

Rules
1. Records that are appended in one pass of the event loop share a batch, and so do all that wait for it.
2. They reach the log in the order in which they were appended here. All requests to a leader share one
   connection, and the leader appends them in the order of arrival.
3. If records may not be in the log, `failed` is called. The store then decides whether to append them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.coordination.raft.events import Proposed
from kafka_compat.coordination.raft.values import NO_NODE
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.append_metadata_records import AppendMetadataRecordsRequest
from kafka_compat.quorum.peer_connections import Lane

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.machine import RaftMachine
    from kafka_compat.quorum.peers import Peers

BATCH_BYTES_MAX: Final = 1024 * 1024
"""Maximum size in bytes of the records that are gathered in one batch. The records of one call may be larger
(coordination.replicated_store.records.BATCH_BYTES_MAX).
"""
ANY_EPOCH: Final = -1


class _Waiting(NamedTuple):
    records: Sequence[bytes]
    failed: Callable[[], None]
    epoch: int


class _Proposal(NamedTuple):
    records: Sequence[bytes]
    done: Callable[[bool], None]
    """Function that is called with True after the records were appended, or with False after a rejection."""


class Appends:
    """The records that are not in a log yet."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        machine: RaftMachine,
        peers: Peers,
        propose: Callable[[Proposed], None],
    ) -> None:
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._machine = machine
        self._peers = peers
        self._propose = propose
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._proposals: dict[Hashable, _Proposal] = {}
        self._last_id = 0
        self._closed = False

    def append(self, records: Sequence[bytes], failed: Callable[[], None], epoch: int = ANY_EPOCH) -> None:
        """Append the store's records (see LogNode)."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(_Waiting(records, failed, epoch))

    def propose(self, records: Sequence[bytes], epoch: int, done: Callable[[bool], None]) -> None:
        """Append records if this node leads `epoch` (-1: any). `done` may be called within this call."""
        self._last_id += 1
        self._proposals[self._last_id] = _Proposal(records, done)
        self._propose(Proposed(self._last_id, len(records), epoch))

    def records_of(self, proposal_id: Hashable) -> Sequence[bytes]:
        """Return the records of a proposal that is about to be appended."""
        return self._proposals[proposal_id].records

    def ended(self, proposal_id: Hashable, is_appended: bool) -> None:
        """Record that a proposal was appended or rejected."""
        self._proposals.pop(proposal_id).done(is_appended)

    def close(self) -> None:
        """Append nothing any more."""
        self._closed = True

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        group: list[_Waiting] = []
        size_bytes = 0
        for each in waiting:
            size = sum(map(len, each.records))
            if group and (each.epoch != group[0].epoch or size_bytes + size > BATCH_BYTES_MAX):
                self._send_group(group)
                group, size_bytes = [], 0
            group.append(each)
            size_bytes += size
        self._send_group(group)

    def _send_group(self, group: Sequence[_Waiting]) -> None:
        if self._closed:
            return
        records = [record for each in group for record in each.records]
        leader_id, epoch = self._machine.leader_id, group[0].epoch
        if leader_id == self._node_id:
            self.propose(records, epoch, partial(self._proposed, group))
        elif leader_id == NO_NODE or epoch != ANY_EPOCH:
            self._fail_soon(group)
        else:
            request = AppendMetadataRecordsRequest(
                cluster_id=self._cluster_id, leader_epoch=self._machine.epoch, records=records
            )
            key = ApiKey.APPEND_METADATA_RECORDS
            self._peers.send(leader_id, Lane.APPEND, key, request, partial(self._answered, group))

    def _proposed(self, group: Sequence[_Waiting], is_appended: bool) -> None:
        if not is_appended:
            self._fail_soon(group)

    def _answered(self, group: Sequence[_Waiting], response: Any) -> None:
        if isinstance(response, Exception) or response.error_code != ErrorCode.NONE:
            self._fail(group)

    def _fail_soon(self, group: Sequence[_Waiting]) -> None:
        self._loop.call_soon(self._fail, group)

    def _fail(self, group: Sequence[_Waiting]) -> None:
        if not self._closed:
            for each in group:
                each.failed()
