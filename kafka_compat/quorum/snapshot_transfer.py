"""Transfer of a snapshot from the leader, part by part.

A transfer that fails is repeated later, perhaps from another leader. A full disk is a failure of this kind,
too, because space can be freed. Other errors of the disk are fatal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.values import OffsetAndEpoch
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.quorum import requests
from kafka_compat.quorum.peer_connections import Lane, NotSupported
from kafka_compat.quorum.worker_jobs import in_worker
from kafka_compat.storage.directories.disk import FULL
from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from kafka_compat.quorum.checkpoints import Checkpoints
    from kafka_compat.quorum.peers import Peers
    from kafka_compat.quorum.requests import Local
    from kafka_compat.storage.directories.directory_worker import Worker

log = logging.getLogger(__name__)

_PART_BYTES: Final = 1024 * 1024


class _Ended(Exception):
    """The transfer cannot continue."""


async def fetch_snapshot(
    sent: effects.FetchSnapshot,
    local: Local,
    peers: Peers,
    checkpoints: Checkpoints,
    worker: Worker,
    handle: Callable[[events.Event], None],
    failed: Callable[[Exception], None],
) -> None:
    """Fetch the snapshot of an effect, store it durably, and report its end with an event. `failed` is called
    after an error of the disk.
    """
    snapshot = sent.snapshot
    try:
        await _fetch(sent, local, peers, checkpoints, worker, handle)
        voters = checkpoints.voters(snapshot)
    except (_Ended, ConnectionError, MalformedRequest, NotSupported, CorruptFile, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, ConnectionError) and error.errno not in FULL:
            failed(error)
            return
        log.warning("Could not fetch snapshot %d-%d from node %d: %s", *snapshot, sent.leader_id, error)
        handle(events.SnapshotNotFetched(snapshot))
        return
    log.info("Fetched snapshot %d-%d from node %d", *snapshot, sent.leader_id)
    handle(events.SnapshotFetched(snapshot, voters))


async def _fetch(
    sent: effects.FetchSnapshot,
    local: Local,
    peers: Peers,
    checkpoints: Checkpoints,
    worker: Worker,
    handle: Callable[[events.Event], None],
) -> None:
    position = 0
    with checkpoints.receive(sent.snapshot) as receiving:
        while True:
            request = requests.snapshot_request(local, sent, position, _PART_BYTES)
            response = await peers.ask(sent.leader_id, ApiKey.FETCH_SNAPSHOT, request, Lane.SNAPSHOT)
            part = _part(response, sent.snapshot, position)
            receiving.write(part.unaligned_records or b"")
            position += len(part.unaligned_records or b"")
            handle(events.SnapshotProgressed(sent.snapshot))
            if position >= part.size:
                break
            if not part.unaligned_records:
                raise _Ended(f"the leader sent no bytes at position {position} of {part.size}")
        await in_worker(worker, receiving.complete)


def _part(response: Any, snapshot: OffsetAndEpoch, position: int) -> Any:
    code = response.error_code
    if code == ErrorCode.NONE and response.topics and response.topics[0].partitions:
        part = response.topics[0].partitions[0]
        code = part.error_code
        if code == ErrorCode.NONE and part.position == position:
            return part
    raise _Ended(f"the leader responded with {known_code(code).name} at position {position}")
