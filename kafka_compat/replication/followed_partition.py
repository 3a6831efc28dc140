"""State of one partition that this broker follows."""

from enum import Enum
from uuid import UUID

from kafka_compat.replication.fetch_session import partition_key
from kafka_compat.replication.follower_session import Wanted
from kafka_compat.replication.partition import Partition

EARLY_BACKOFF_MS = 20
"""The first backoff, in ms, after an error from a leader that does not know its role yet."""


class State(Enum):
    """The type of the next request to the leader. The docstring of `follower` lists the transitions."""

    FETCHING = "fetching"
    END = "end"
    START = "start"


class FollowedPartition:
    """One followed partition in one leader epoch."""

    __slots__ = (
        "delayed_until_ms",
        "early_backoff_ms",
        "is_in_sync",
        "key_by_id",
        "key_by_name",
        "leader_epoch",
        "partition",
        "state",
        "topic_id",
    )

    def __init__(self, partition: Partition, topic_id: UUID) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.key_by_id = partition_key(topic_id, partition.partition)
        self.key_by_name = partition_key(partition.topic, partition.partition)
        self.leader_epoch = partition.leader_epoch
        self.state = State.FETCHING
        self.delayed_until_ms = 0
        self.early_backoff_ms = EARLY_BACKOFF_MS
        self.is_in_sync = False
        """Whether the replica had all committed records at the time of the last response."""

    def wanted(self) -> Wanted:
        """Return the partition's entry in the next Fetch request, which starts at the log end."""
        own = self.partition.log
        return Wanted(
            self.leader_epoch, own.log_end_offset, own.leader_epochs.latest_epoch, own.log_start_offset
        )
