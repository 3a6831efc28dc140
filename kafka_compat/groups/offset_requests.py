"""Requests for the committed offsets of the groups of one broker, and the deletion of offsets that have
expired or whose topic was deleted.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.coordinator_runtime.machine import Output
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.group import Group
from kafka_compat.groups.hosted_groups import HostedGroups
from kafka_compat.groups.records import OffsetRecord, encode_record
from kafka_compat.groups.requests import (
    NO_GENERATION,
    Commit,
    EncodedRecord,
    OffsetAndMetadata,
    PartitionErrors,
    TopicPartition,
)
from kafka_compat.long_work import Steps, batched

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.hosted_groups import Running
    from kafka_compat.metadata.described import TopicMetadata

DELETED_AT_ONCE: Final = 500
"""Number of offsets to delete in one step when they expire or their topic is deleted."""
_ENCODED_AT_ONCE: Final = 100
"""Number of committed offsets to encode in one step."""

FetchedOffsets = dict[TopicPartition, tuple[OffsetAndMetadata | None, ErrorCode]]


class OffsetRequests:
    """Requests for committed offsets. `partition_exists` returns whether a topic has a partition; offsets for
    other partitions are rejected. `topic_id` returns the ID of a topic, or None if it does not exist.
    """

    def __init__(
        self,
        hosted: HostedGroups,
        partition_exists: Callable[[str, int], bool],
        topic_id: "Callable[[str], UUID | None]",
    ) -> None:
        self._hosted = hosted
        self._partition_exists = partition_exists
        self._topic_id = topic_id
        self._running = hosted.running
        self._runtime = hosted.runtime
        self._now = hosted.now

    def commit(
        self, group_id: str, request: Commit, respond: Callable[[PartitionErrors], None]
    ) -> Steps[None]:
        """Commit offsets. `respond` receives an error code for each partition."""
        refused: PartitionErrors = {}
        for some in batched(request.offsets):
            for partition in some:
                if not self._partition_exists(*partition):
                    refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield None
        if refused:
            offsets: dict[TopicPartition, OffsetAndMetadata] = {}
            for rest in batched(request.offsets.items()):
                offsets.update((key, value) for key, value in rest if key not in refused)
                yield None
            request = request._replace(offsets=offsets)
            if not request.offsets:
                respond(refused)
                return
            inner = respond
            respond = lambda errors: inner(refused | errors)  # noqa: E731
        if len(request.offsets) > _ENCODED_AT_ONCE:
            request = request._replace(encoded=(yield from _encoded(group_id, request.offsets)))
        error = self._hosted.refusal(group_id, empty_id_allowed=request.producer is None)
        running = self._running.get(group_id)
        if not error and running is None:
            if request.generation_id < 0:
                running = self._runtime.host(group_id)
            else:
                error = request.missing_group_error
        if error or running is None:
            respond(dict.fromkeys(request.offsets, error))
        else:
            self._runtime.carry_out(running, running.machine.commit_offsets(request, respond, self._now()))

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> tuple[ErrorCode, FetchedOffsets]:
        """Return an error code, and the committed offsets for these partitions (None: all partitions). If a
        member of a consumer group requests them, its epoch must be the current one (KIP-848).

        With `require_stable`, partitions for which `is_unstable` is true get UNSTABLE_OFFSET_COMMIT
        (KIP-447).
        """
        error = self._hosted.refusal(group_id, empty_id_allowed=True)
        if error:
            return error, {}
        running = self._running.get(group_id)
        if running is None:
            return ErrorCode.NONE, {partition: (None, ErrorCode.NONE) for partition in partitions or ()}
        error = running.machine.fetch_error(member_id, member_epoch)
        if error:
            return error, {}
        offsets = running.machine.offsets
        fetched: FetchedOffsets = {}
        for partition in list(offsets.stored.committed) if partitions is None else partitions:
            if require_stable and offsets.is_unstable(partition):
                fetched[partition] = (None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            else:
                fetched[partition] = (offsets.get(partition), ErrorCode.NONE)
        return ErrorCode.NONE, fetched

    def delete(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        respond: Callable[[PartitionErrors | ErrorCode], None],
    ) -> Steps[None]:
        """Delete offsets. `respond` receives an error code for each partition, or one for the whole group."""
        refused: PartitionErrors = {}
        known: list[TopicPartition] = []
        for some in batched(partitions):
            for partition in some:
                if self._partition_exists(*partition):
                    known.append(partition)
                else:
                    refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield None

        def merge(result: PartitionErrors | ErrorCode) -> None:
            respond(refused | result if isinstance(result, dict) else result)

        self._delete(group_id, known, merge)

    def _delete(
        self,
        group_id: str,
        partitions: list[TopicPartition],
        respond: Callable[[PartitionErrors | ErrorCode], None],
    ) -> None:
        running, error = self._hosted.find(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if error or running is None:
            respond(error)
            return
        machine = running.machine
        self._hosted.long_events.process(
            running,
            lambda: machine.delete_offsets(partitions, respond),
            lambda: self._delete(group_id, partitions, respond),
            lambda: respond(ErrorCode.UNKNOWN_SERVER_ERROR),
        )

    def copy(
        self,
        source: str,
        target: str,
        group_ids: Collection[str] | None,
        respond: Callable[[str, ErrorCode], None],
    ) -> list[str]:
        """Copy the committed offsets of `group_ids`, or of all groups if None, from the topic `source` to the
        topic `target`. Return the IDs of the groups that have offsets for `source`. When a group's offsets
        are stored, `respond` is called with its ID and the first error code, or NONE.
        """
        copied = []
        topic_id = self._topic_id(target)
        for group_id, running in list(self._running.items()):
            if group_ids is not None and group_id not in group_ids:
                continue
            offsets = {
                (target, partition): each.value._replace(
                    topic_id=None if each.value.topic_id is None else topic_id
                )
                for (topic, partition), each in running.machine.offsets.stored.committed.items()
                if topic == source
            }
            if offsets:
                copied.append(group_id)

                def stored(errors: PartitionErrors, group_id: str = group_id) -> None:
                    respond(group_id, next(filter(None, errors.values()), ErrorCode.NONE))

                self._runtime.carry_out(running, running.machine.put_offsets(offsets, stored))
        return copied

    def forget_topic(self, topic: "TopicMetadata") -> None:
        """Delete all groups' offsets for a topic that was deleted, in the background if there are many."""
        self._runtime.run_cooperatively(self._forgetting(topic, self._now().wall_ms))

    def _forgetting(self, topic: "TopicMetadata", deleted_ms: int) -> Iterator[int]:
        for running in list(self._running.values()):
            machine = running.machine
            find = partial(machine.offsets.of_topic, topic, deleted_ms)
            found = find()
            if found and self._running.get(running.key) is running:
                yield from self._delete_in_parts(running, found, find, machine.forget_partitions)
            yield 1

    def expiring(self) -> Iterator[int]:
        """Delete all expired offsets, in steps."""
        for running in list(self._running.values()):
            machine = running.machine

            def expired(machine: Group = machine) -> list[TopicPartition]:
                return machine.expired_offsets(self._now())

            if self._running.get(running.key) is running:
                yield from self._delete_in_parts(running, expired(), expired, machine.delete_expired)

    def _delete_in_parts(
        self,
        running: "Running",
        found: list[TopicPartition],
        find: Callable[[], list[TopicPartition]],
        delete: Callable[[list[TopicPartition]], Output],
    ) -> Iterator[int]:
        """Delete the offsets in `found`, in parts. `find` returns them again after each part, because offsets
        may be committed in the meantime.
        """
        for _ in range(len(found) // DELETED_AT_ONCE + 1):
            part = found[:DELETED_AT_ONCE]
            self._runtime.carry_out(running, delete(part))
            yield 2 + 2 * len(part)
            if self._running.get(running.key) is not running:
                return
            found = find()
            if not found:
                return


def _encoded(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Steps[dict[TopicPartition, EncodedRecord] | None]:
    """Encode the records of committed offsets, in steps. Return None if a string in a record is too long; the
    runtime then rejects the commit.
    """
    encoded: dict[TopicPartition, EncodedRecord] = {}
    try:
        for some in batched(offsets.items(), _ENCODED_AT_ONCE):
            yield None
            for (topic, partition), value in some:
                encoded[topic, partition] = encode_record(OffsetRecord(group_id, topic, partition, value))
    except ValueError:
        return None
    return encoded
