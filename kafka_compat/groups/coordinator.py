"""The group coordinator: all groups of the shards of `__consumer_offsets` that this broker leads.

Each request is passed to the state machine of its group; the runtime does the remaining work. The requests to
each type of group are in a file of its own (`classic/requests.py`, `consumer/requests.py`,
`share/requests.py`), and those for committed offsets in `offset_requests.py`. Each response is passed to the
callback of its request, immediately or when the records that it depends on are committed. Each callback is
called exactly once, even if this broker loses the shard or shuts down.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from uuid import uuid4

from kafka_compat.coordinator_runtime.coordinator_log import CoordinatorLog
from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.scheduler import Scheduler
from kafka_compat.coordinator_runtime.shard import RunningMachine
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.requests import ClassicGroupRequests
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes
from kafka_compat.groups.consumer.requests import ConsumerGroupRequests
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.group import Group
from kafka_compat.groups.hosted_groups import HostedGroups
from kafka_compat.groups.long_events import LongEvents
from kafka_compat.groups.offset_requests import OffsetRequests
from kafka_compat.groups.offsets import CommittedOffset
from kafka_compat.groups.records import Record, decode_record, encode_record
from kafka_compat.groups.requests import GroupOverview, GroupType, TopicPartition
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.requests import Effect, ShareGroupRequests
from kafka_compat.groups.typed_group import KnownMember
from kafka_compat.long_work import Steps, batched, finished
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.metadata.topic_nodes import new_id

_LISTED_AT_ONCE: Final = 100
"""Number of groups to list in one step."""


def random_member_id(prefix: str | None) -> str:
    """Return a new member ID as Kafka does: with a prefix in a classic group, without in a consumer group."""
    return new_id() if prefix is None else f"{prefix}-{uuid4()}"


class GroupProgress(NamedTuple):
    """The type, state, members and committed offsets of a group. `members` maps member IDs to members. Both
    mappings are live views.
    """

    type: GroupType
    state: str
    members: Mapping[str, KnownMember]
    committed: Mapping[TopicPartition, CommittedOffset]


class GroupCoordinator:
    """All groups of one broker. `classic`, `consumer` and `share` serve the requests to each type of group,
    and `offsets` those for committed offsets.

    `partition_exists` returns whether a topic has a partition; offsets for other partitions are rejected.
    `now_ms` returns the time of day.
    """

    def __init__(
        self,
        *,
        coordinator_log: CoordinatorLog,
        scheduler: Scheduler,
        settings: GroupSettings,
        now_ms: Callable[[], int],
        partition_exists: Callable[[str, int], bool],
        consumer_groups: ConsumerGroups,
        share_groups: ShareGroups,
        new_member_id: Callable[[str | None], str] = random_member_id,
    ) -> None:
        self._settings = settings
        self._new_member_id = new_member_id
        self._consumer_groups = consumer_groups
        self._share_groups = share_groups
        self.counts = GroupCounts()
        self._runtime: CoordinatorRuntime[Group, Record] = CoordinatorRuntime(
            topic=OFFSETS_TOPIC,
            noun="group",
            coordinator_log=coordinator_log,
            scheduler=scheduler,
            now_ms=now_ms,
            new_machine=self._new_group,
            encode=encode_record,
            decode=decode_record,
            perform=self._perform,
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
        )
        self._long_events = LongEvents(self._runtime, scheduler, encode_record)
        self._running = self._runtime.running
        self._now = self._runtime.now
        self._hosted = hosted = HostedGroups(self._runtime, self._long_events)
        self.classic = ClassicGroupRequests(hosted, settings)
        self.consumer = ConsumerGroupRequests(hosted, consumer_groups)
        self.share = ShareGroupRequests(hosted, share_groups)
        self.offsets = OffsetRequests(hosted, partition_exists, consumer_groups.topics.topic_id)

    def _new_group(self, group_id: str, snapshots: SnapshotRegistry) -> Group:
        return Group(
            group_id,
            snapshots,
            self._settings,
            self._new_member_id,
            self._consumer_groups,
            self._share_groups,
            self.counts,
            self._now(),
        )

    def start(self) -> None:
        """Start checking for expired offsets, every offsets.retention.check.interval.ms."""
        self._runtime.every(
            self._settings.offsets_retention_check_interval_ms,
            lambda: self._runtime.run_cooperatively(self.offsets.expiring()),
        )

    def close(self) -> None:
        """Stop all timers and complete pending requests; later requests get COORDINATOR_NOT_AVAILABLE."""
        self._runtime.close()
        self._long_events.end_lost()

    def load(self, index: int, leader_epoch: int = 0) -> None:
        """Load a shard of which this broker became leader. A long log is read in steps, during which requests
        get COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._runtime.load(index, leader_epoch)
        self._long_events.end_lost()

    def unload(self, index: int) -> None:
        """Unload a shard that this broker no longer leads."""
        self._runtime.unload(index)
        self._long_events.end_lost()

    def shard_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that stores a group. The topic must exist."""
        return self._runtime.shard_of(group_id)

    def end_transaction(self, index: int, producer_id: int, committed: bool, end_offset: int) -> None:
        """Process the marker of a transaction, which was appended to a shard before `end_offset`: publish the
        offsets of the transaction, or discard them.
        """
        self._runtime.end_transaction(index, producer_id, committed, end_offset)

    def _perform(self, running: RunningMachine[Group], effect: ResolveRegexes | Effect) -> None:
        if isinstance(effect, ResolveRegexes):
            self.consumer.resolve_regexes(running, effect)
        else:
            self.share.perform(running, effect)

    def topics_changed(self, names: Collection[str]) -> None:
        """Let consumer and share groups that subscribe to these topics compare their metadata hash, in the
        background if there are many groups.
        """
        self._runtime.run_cooperatively(self._telling(frozenset(names)))

    def _telling(self, changed: frozenset[str]) -> Iterator[int]:
        for running in list(self._running.values()):
            running.machine.topics_changed(changed)
            yield 2

    @property
    def load_times_ms(self) -> Sequence[int]:
        """Load times in ms of the most recently loaded shards."""
        return self._runtime.load_times_ms

    @property
    def is_loading(self) -> bool:
        """Whether any shard is being loaded. While this is true, groups may be missing from the results."""
        return self._runtime.is_loading

    def list_groups(self, states: set[str], types: set[str]) -> tuple[ErrorCode, list[GroupOverview]]:
        """Return an error code, and the groups with these states and types, which must be in lower case.
        Empty filters match all.
        """
        return finished(self.list_groups_in_steps(states, types))

    def list_groups_in_steps(
        self, states: set[str], types: set[str]
    ) -> Steps[tuple[ErrorCode, list[GroupOverview]]]:
        """Do the same as `list_groups`, in steps."""
        if self._runtime.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._runtime.is_loading else ErrorCode.NONE
        found: list[GroupOverview] = []
        for some in batched(list(self._running.values()), _LISTED_AT_ONCE):
            yield None
            overviews = [each.machine.overview() for each in some if not each.machine.is_dead]
            found += (
                group
                for group in overviews
                if (not states or group.state.lower() in states) and (not types or group.type in types)
            )
        return error, found

    def group_ids(self) -> list[str]:
        """Return the IDs of all groups on this broker."""
        return list(self._running)

    def progress(self, group_id: str) -> GroupProgress | None:
        """Return the state, members and offsets of a group, or None if the group is unknown."""
        running = self._running.get(group_id)
        if running is None:
            return None
        view = running.machine.view
        return GroupProgress(view.type, view.state, view.members, running.machine.offsets.stored.committed)

    def delete_groups(
        self, group_ids: Iterable[str], respond: Callable[[dict[str, ErrorCode]], None]
    ) -> None:
        """Delete groups. `respond` is called when all groups have been deleted or rejected."""
        waiting = dict.fromkeys(group_ids)
        errors: dict[str, ErrorCode] = {}

        def answer(group_id: str, error: ErrorCode) -> None:
            errors[group_id] = error
            if len(errors) == len(waiting):
                respond({group_id: errors[group_id] for group_id in waiting})

        if not waiting:
            respond({})
        for group_id in waiting:
            self._delete_group(group_id, partial(answer, group_id))

    def _delete_group(self, group_id: str, respond: Callable[[ErrorCode], None]) -> None:
        error = self._hosted.refusal(group_id, empty_id_allowed=True)
        running = self._running.get(group_id)
        if error or running is None:
            respond(error or ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            machine = running.machine
            self._long_events.process(
                running,
                lambda: machine.delete(respond, self._now()),
                lambda: self._delete_group(group_id, respond),
                lambda: respond(ErrorCode.UNKNOWN_SERVER_ERROR),
            )
