"""How far a follower's log agrees with its leader's (KIP-101, KIP-279). Pure."""

from __future__ import annotations

from kafka_compat.replication.partition import Partition

UNDEFINED = -1


def truncation_offset(partition: Partition, epoch: int, end_offset: int) -> int:
    """Where to cut the log of a follower whose leader's records of `epoch`, the largest that it knows up to
    the follower's last, end at `end_offset`; both -1 when the leader knows none.

    Where the follower has that epoch too, the logs agree up to the smaller of both its ends. Where it has
    not, they agree at most up to the end of the last epoch before it, and the next exchange looks on from
    there: one cut is not enough after two quick changes of leader (KIP-279).
    """
    log = partition.log
    if end_offset == UNDEFINED:
        return min(partition.high_watermark, log.log_end_offset)
    if epoch == UNDEFINED:
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_end == UNDEFINED:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)
