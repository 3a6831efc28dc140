"""Transaction indexes of a log, rebuilt from the log if their files are damaged or missing.

A missing file usually means that no transaction was aborted. But if the offset index is missing, too, an
operator has removed the indexes: then all are rebuilt, as in Apache Kafka.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.storage.config import LONG_MAX
from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.log.producer_snapshots import replay
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX

if TYPE_CHECKING:
    from kafka_compat.storage.log.producer_state import ProducerState
    from kafka_compat.storage.segments.segment import Segment
    from kafka_compat.storage.segments.txn_index import AbortedTransaction, TransactionIndex

logger = logging.getLogger(__name__)

LoadProducers = Callable[[Sequence["Segment"], int], "ProducerState"]
"""Function that returns the producer state at an offset, given the segments before it."""


def intact(segments: Sequence[Segment], number: int, load_producers: LoadProducers) -> TransactionIndex:
    """Return the transaction index of a segment, loaded into memory. If its file is damaged, rebuild it.

    Raises OSError, or CorruptRecord if the log is damaged too.
    """
    segment = segments[number]
    index = segment.txn_index
    if index.is_loaded:
        return index
    try:
        index.check(segment.base_offset)
    except CorruptFile as error:
        logger.warning("Rebuilding the transaction index of %s: %s", segment.path(LOG_SUFFIX), error)
        rebuild(segments, number, load_producers)
    return index


def rebuild(segments: Sequence[Segment], number: int, load_producers: LoadProducers) -> int:
    """Rebuild the transaction index of a segment from its batches and the producer state at its start. Return
    the number of entries. Raises OSError, or CorruptRecord.
    """
    segment = segments[number]
    producers = load_producers(segments[:number], segment.base_offset)
    aborted = replay(producers, [segment], segment.base_offset, LONG_MAX)
    segment.txn_index.replace(aborted)
    # If the disk is full, the entries remain in memory and are used from there.
    with contextlib.suppress(OSError):
        segment.txn_index.store()
    return len(aborted)


def aborted_transactions(
    segments: Sequence[Segment],
    first: int,
    fetch_offset: int,
    upper_bound: int,
    load_producers: LoadProducers,
) -> list[AbortedTransaction]:
    """Return the aborted transactions with records in [fetch_offset, upper_bound). `first` is the number of
    the segment that contains `fetch_offset`.
    """
    aborted: list[AbortedTransaction] = []
    for number in range(first, len(segments)):
        index = intact(segments, number, load_producers)
        in_segment, complete = index.collect(fetch_offset, upper_bound)
        aborted += in_segment
        if complete:
            break
    return aborted
