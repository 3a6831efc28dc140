"""The consumer group that a group is or can become. It is created when it is first needed: most groups remain
classic groups.
"""

from collections.abc import Callable

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.groups.classic.joining import Joining
from kafka_compat.groups.classic.rebalance import Rebalance
from kafka_compat.groups.consumer.consumer_group import ConsumerGroup
from kafka_compat.groups.consumer.conversion import Downgrade, Upgrade
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.members import ConsumerMembers
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.timers import Timers


class Convertible:
    """A group as a consumer group. `created` is None until `group` is needed."""

    __slots__ = (
        "_common",
        "_counts",
        "_joining",
        "_new_member_id",
        "_offsets",
        "_rebalance",
        "_snapshots",
        "created",
    )

    def __init__(
        self,
        rebalance: Rebalance,
        joining: Joining,
        snapshots: SnapshotRegistry,
        offsets: GroupOffsets,
        new_member_id: Callable[[str | None], str],
        common: ConsumerGroups,
        counts: GroupCounts,
    ) -> None:
        self.created: ConsumerGroup | None = None
        self._rebalance = rebalance
        self._joining = joining
        self._snapshots = snapshots
        self._offsets = offsets
        self._new_member_id = new_member_id
        self._common = common
        self._counts = counts

    @property
    def group(self) -> ConsumerGroup:
        """The consumer group."""
        if self.created is None:
            self.created = ConsumerGroup(
                self.members(GroupState(self._snapshots), self._rebalance.timers),
                self._offsets,
                self._rebalance.settings.offsets_retention_ms,
                self._new_member_id,
                self._joining.join_at_once,
            )
        return self.created

    def members(self, state: GroupState, timers: Timers) -> ConsumerMembers:
        """Return the members of a consumer group with this state."""
        rebalance, common = self._rebalance, self._common
        downgrade = Downgrade(rebalance, common.limits, common.topics)
        return ConsumerMembers(
            rebalance.group_id, state, common, downgrade, rebalance.outbox, timers, self._counts
        )

    def upgrade(self) -> Upgrade:
        """Return the conversion of a classic group with members to a consumer group."""
        return Upgrade(self._rebalance, self._common.limits, self._common.topics)
