"""Where a consumer reads cheapest: a replica in its own rack (KIP-392). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_compat.replication.partition import Partition

LEADER = -1


def nearest_replica(
    partition: Partition, rack: str, racks: Mapping[int, str | None], fetch_offset: int
) -> int:
    """The in-sync follower in `rack` to read from `fetch_offset`, which has it and is furthest on; LEADER
    when the leader is there itself, or no follower is. `racks` are those of the living brokers.
    """
    if racks.get(partition.local_id) == rack:
        return LEADER
    candidates = [
        (state.log_end_offset, state.last_caught_up_ms, -broker_id)
        for broker_id, state in partition.in_sync.followers.items()
        if racks.get(broker_id) == rack
        and broker_id in partition.isr
        and 0 <= state.log_start_offset <= fetch_offset <= state.log_end_offset
    ]
    return -max(candidates)[2] if candidates else LEADER
