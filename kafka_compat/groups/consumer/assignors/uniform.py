"""The uniform assignor: as many partitions for each member as for any other, and few changes (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.groups.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from kafka_compat.groups.consumer.assignors.uniform_homogeneous import assign_homogeneous

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import GroupSpec, TargetAssignment
    from kafka_compat.long_work import Steps


class UniformAssignor:
    """Kafka's UniformAssignor, the default."""

    @property
    def name(self) -> str:
        return "uniform"

    def assign(self, group: GroupSpec, partition_counts: Mapping[UUID, int]) -> Steps[TargetAssignment]:
        if group.is_homogeneous:
            return assign_homogeneous(group, partition_counts)
        return assign_heterogeneous(group, partition_counts)
