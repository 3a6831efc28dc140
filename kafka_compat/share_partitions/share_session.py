"""Share sessions: the partitions that a member of a share group fetches from this broker (KIP-932).

Rules
1. A session belongs to one member of one group. Epoch 0 opens it, and replaces an existing one; epoch -1 ends
   it. In between, each request must contain the next epoch: after 1 follows 2, and after 2^31 - 1 follows 1.
2. A session ends with the connection that opened it. All records that the member has acquired on this broker
   are then released. A session that was replaced on another connection stays open.
3. The first response contains all fetched partitions, and later ones only partitions with records, errors or
   acknowledgements, and partitions that are new in the session. Partitions with records move to the end of
   the session, in the order of the response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class TopicIdPartition(NamedTuple):
    topic_id: UUID
    partition: int


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after one with this epoch."""
    return FINAL_EPOCH if epoch < 0 else epoch + 1 if epoch < _EPOCH_MAX else 1


class ShareSession:
    __slots__ = ("connection", "epoch", "key", "names", "partitions")

    def __init__(self, key: SessionKey, connection: object) -> None:
        self.key = key
        self.connection = connection
        """The connection that opened the session."""
        self.epoch = next_epoch(INITIAL_EPOCH)
        """The epoch that the next request must contain."""
        self.partitions: dict[TopicIdPartition, bool] = {}
        """The partitions, in order of addition, and whether the next response must contain them."""
        self.names: dict[TopicIdPartition, str] = {}
        """The topic of each partition, for partitions of topics that have been deleted since."""

    def add(self, partitions: Iterable[TopicIdPartition], *, is_new: bool) -> None:
        """Add partitions, which are new unless the session begins with them."""
        for each in partitions:
            self.partitions.setdefault(each, is_new)

    def forget(self, topic_id: UUID, partitions: Iterable[int]) -> None:
        for each in partitions:
            partition = TopicIdPartition(topic_id, each)
            self.partitions.pop(partition, None)
            self.names.pop(partition, None)

    def rotated(self, epoch: int) -> list[TopicIdPartition]:
        """Return the partitions in the order in which a request with this epoch fetches them: each request
        begins with a different partition.
        """
        partitions = list(self.partitions)
        start = epoch % len(partitions) if partitions and epoch > 0 else 0
        return partitions[start:] + partitions[:start]

    def must_send(self, key: TopicIdPartition, code: ErrorCode, has_records: bool) -> bool:
        """Apply rule 3 to the result of a partition that is about to be sent."""
        is_due = self.partitions.get(key)
        if is_due is None:
            return False
        if is_due or code != ErrorCode.NONE:
            # After an error, the next response contains the partition too, to tell that it is over.
            self.partitions[key] = is_due = code != ErrorCode.NONE
            must_send = True
        else:
            must_send = has_records
        if has_records:
            del self.partitions[key]
            self.partitions[key] = is_due
        return must_send


class ShareSessions:
    """The share sessions of a broker."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[object, dict[SessionKey, None]] = {}
        self._members: Counter[str] = Counter()
        """Number of sessions of each group."""

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        """Return whether any member of the group has a session."""
        return group_id in self._members

    def open(self, key: SessionKey, connection: object, sessions_max: int) -> ShareSession:
        """Open a session. Raises SHARE_SESSION_LIMIT_REACHED if the broker has `sessions_max` sessions."""
        self.end(key)
        if len(self._sessions) >= sessions_max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, connection)
        self._members[key.group_id] += 1
        self._of_connection.setdefault(connection, {})[key] = None
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session for a request with this epoch, and expect the next epoch from then on. Raises
        SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if session.epoch != epoch:
                raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.epoch = next_epoch(epoch)
        return session

    def end(self, key: SessionKey) -> ShareSession | None:
        """Forget a session, and return it."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key.group_id] -= 1
            if not self._members[key.group_id]:
                del self._members[key.group_id]
            keys = self._of_connection[session.connection]
            del keys[key]
            if not keys:
                del self._of_connection[session.connection]
        return session

    def of_connection(self, connection: object) -> list[SessionKey]:
        """Return the keys of the sessions that a connection has opened."""
        return list(self._of_connection.get(connection, ()))
