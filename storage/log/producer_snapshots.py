"""Load producer state from the newest snapshot file and the batches after it."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.log.producer_state import ProducerState
from kafka_compat.storage.log.segment_names import base_offsets
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.segment_files import SNAPSHOT_SUFFIX, file_name

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.segments.txn_index import AbortedTxn

logger = logging.getLogger(__name__)


def snapshot_offsets(names: Sequence[str]) -> list[int]:
    """Return the offsets of the snapshots in a list of file names, in ascending order."""
    return sorted(base_offsets(names, SNAPSHOT_SUFFIX))


def load_producers(
    filesystem: Filesystem,
    directory: str,
    names: list[str],
    segments: Sequence[Segment],
    log_end_offset: int,
    expiration_ms: int,
) -> ProducerState:
    """Load the producer state after the batch that ends at `log_end_offset`.

    `names` are the files in the directory. Snapshots that a crash has damaged are removed, also from `names`,
    and an older one is used. The batches after the snapshot are replayed from the segments, all of which must
    be intact.
    """
    producers, start_offset = ProducerState(expiration_ms=expiration_ms), 0
    for offset in reversed(snapshot_offsets(names)):
        if offset > log_end_offset:
            continue
        name = file_name(offset, SNAPSHOT_SUFFIX)
        path = f"{directory}/{name}"
        try:
            producers = ProducerState.decode_snapshot(filesystem.read_file(path), expiration_ms=expiration_ms)
            start_offset = offset
            break
        except CorruptFile as error:
            logger.warning("Removed the invalid producer snapshot %s: %s", path, error)
            filesystem.unlink(path)
            names.remove(name)
    replay(producers, segments, start_offset, log_end_offset)
    return producers


def replay(
    producers: ProducerState, segments: Sequence[Segment], start_offset: int, end_offset: int
) -> list[AbortedTxn]:
    """Apply the batches in [start_offset, end_offset) to the producer state, and return the transactions that
    were aborted there.
    """
    aborted: list[AbortedTxn] = []
    first = max(bisect_right([segment.base_offset for segment in segments], start_offset) - 1, 0)
    for segment in segments[first:]:
        if segment.base_offset >= end_offset or start_offset >= end_offset:
            break
        for batch in scan_headers(segment.file, segment.position_of(start_offset), segment.size_bytes):
            header = batch.header
            if header.producer_id >= 0 and start_offset <= header.base_offset < end_offset:
                data = batch.data
                if header.is_control:
                    data = memoryview(FileSlice(segment.file, batch.position, header.size_bytes).read())
                ended = producers.apply(header, data)
                if ended is not None:
                    aborted.append(ended)
    return aborted
