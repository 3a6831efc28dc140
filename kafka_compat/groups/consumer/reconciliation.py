"""Reconciliation of one member's current assignment with its target assignment (KIP-848).

Rules
- A member first revokes the partitions that it must give up. Until a heartbeat lists its owned partitions
  without them, it keeps its epoch and is UNREVOKED_PARTITIONS.
- It then goes on to the epoch of the target assignment, and gets the target partitions that no other member
  has. If others still have some of them, it is UNRELEASED_PARTITIONS, and gets each of them when it is free.
- Partitions of topics to which the member no longer subscribes are revoked at once, before a new target
  assignment exists.
"""

from collections.abc import Callable, Collection, Mapping, Set
from typing import TYPE_CHECKING

from kafka_compat.groups.consumer.member import Member, MemberState, PartitionEpochs

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment

Owned = Mapping["UUID", Collection[int]]
"""The partitions that a member reports to own."""


def reconciled(
    member: Member,
    target_epoch: int,
    target: "Assignment",
    subscribed_topic_ids: "Set[UUID]",
    has_new_topics: bool,
    owned: Owned | None,
    is_owned_by_other: "Callable[[UUID, int], bool]",
    subscribes: bool,
) -> Member:
    """Return the next state of a member, or the same object if it cannot go on.

    `target` is the member's part of the target assignment of `target_epoch`. `has_new_topics` is true if the
    subscription has changed. `owned` is None if the heartbeat does not list the owned partitions.
    `is_owned_by_other` returns whether another member has a partition. `subscribes` is true if the member
    subscribes to any topics, including topics that do not exist.
    """
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, member.pending_revocation):
            return _without_unsubscribed(member, subscribed_topic_ids) if has_new_topics else member
    elif member.is_reconciled_to(target_epoch):
        if not has_new_topics:
            return member
        if not subscribes and not member.assigned:
            # As in Kafka, a new subscription without topics repeats the epoch.
            return member.at_epoch(member.epoch)
        return _without_unsubscribed(member, subscribed_topic_ids, owned)
    return _next(member, target_epoch, target, subscribed_topic_ids, owned, is_owned_by_other)


def _next(
    member: Member,
    target_epoch: int,
    target: "Assignment",
    subscribed_topic_ids: "Set[UUID]",
    owned: Owned | None,
    is_owned_by_other: "Callable[[UUID, int], bool]",
) -> Member:
    kept: dict[UUID, Mapping[int, int]] = {}
    revoked: dict[UUID, Mapping[int, int]] = {}
    added: dict[UUID, dict[int, int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*target, *member.assigned)):
        current = member.assigned.get(topic_id, {})
        wanted = frozenset(target.get(topic_id, ()))
        if topic_id not in subscribed_topic_ids:
            wanted = frozenset()
        stays = {partition: epoch for partition, epoch in current.items() if partition in wanted}
        if stays:
            kept[topic_id] = stays
        if len(stays) < len(current):
            revoked[topic_id] = {
                partition: epoch for partition, epoch in current.items() if partition not in stays
            }
        for partition in target.get(topic_id, ()):
            if partition in stays or partition not in wanted:
                continue
            if is_owned_by_other(topic_id, partition):
                waits = True
            else:
                added.setdefault(topic_id, {})[partition] = target_epoch
    if revoked and _owns_any(owned, revoked):
        return member.at_epoch(member.epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    for topic_id, partitions in added.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **partitions}
    return member.at_epoch(target_epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=kept,
        pending_revocation={},
    )


def _without_unsubscribed(
    member: Member, subscribed_topic_ids: "Set[UUID]", owned: Owned | None = None
) -> Member:
    """Revoke the partitions of topics to which the member no longer subscribes."""
    gone = {topic: parts for topic, parts in member.assigned.items() if topic not in subscribed_topic_ids}
    if not gone:
        return member
    kept = {topic: parts for topic, parts in member.assigned.items() if topic in subscribed_topic_ids}
    if member.state is MemberState.STABLE and not _owns_any(owned, gone):
        return member.at_epoch(member.epoch)._replace(assigned=kept)
    pending = dict(member.pending_revocation)
    for topic, partitions in gone.items():
        pending[topic] = {**pending.get(topic, {}), **partitions}
    return member.at_epoch(member.epoch)._replace(
        state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=pending
    )


def _owns_any(owned: Owned | None, partitions: PartitionEpochs) -> bool:
    """Return whether the member owns any of these partitions, which is assumed if it does not say."""
    if owned is None:
        return True
    return any(
        not numbers.keys().isdisjoint(owned.get(topic_id, ())) for topic_id, numbers in partitions.items()
    )
