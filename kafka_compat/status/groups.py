"""Query brokers for the groups that they coordinate: all groups of a broker in few requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka_compat.client.groups import CONSUMERS
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.status.snapshot import Group, Position

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE: Final = 1000
_SEVERAL_GROUPS: Final = 8
"""The version of OffsetFetch from which on it asks for several groups (KIP-709)."""
_NEW_PROTOCOL: Final = "consumer"
_CLASSIC: Final = ("", "classic")


class Asker(Protocol):
    """What is needed of who asks."""

    def ask(self, node_id: int, key: ApiKey, **request: Any) -> Any: ...

    def version(self, node_id: int, key: ApiKey) -> int: ...

    def note(self, text: str) -> None: ...


def ask_groups(asker: Asker, brokers: Iterable[int]) -> tuple[list[Group], list[tuple[int, str]]]:
    """All groups with what they committed, by their names; and the brokers that do not serve theirs, with the
    error.
    """
    found: dict[str, Group] = {}
    unserved = []
    for node_id in brokers:
        answer = asker.ask(node_id, ApiKey.LIST_GROUPS)
        if answer is None:
            continue
        if answer.error_code:
            unserved.append((node_id, known_code(answer.error_code).name))
        groups = {
            one.group_id: Group(one.group_id, one.group_state, one.group_type, one.protocol_type, node_id)
            for one in answer.groups
        }
        _describe(asker, node_id, groups)
        _positions(asker, node_id, groups)
        found |= groups
    return [found[group_id] for group_id in sorted(found)], unserved


def _describe(asker: Asker, node_id: int, groups: dict[str, Group]) -> None:
    """State and members."""
    newer = [each.group_id for each in groups.values() if each.type.lower() == _NEW_PROTOCOL]
    classic = [each.group_id for each in groups.values() if each.type.lower() in _CLASSIC]
    answers = [asker.ask(node_id, ApiKey.DESCRIBE_GROUPS, groups=part) for part in _parts(classic)]
    if newer:
        answers += [
            asker.ask(node_id, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=part) for part in _parts(newer)
        ]
    for answer in answers:
        for one in answer.groups if answer is not None else ():
            group = groups[one.group_id]
            if one.error_code:
                groups[one.group_id] = group._replace(error=known_code(one.error_code).name)
            else:
                state = one.group_state or group.state
                groups[one.group_id] = group._replace(state=state, members=len(one.members))


def _positions(asker: Asker, node_id: int, groups: dict[str, Group]) -> None:
    """What groups of consumers have committed."""
    names = [each.group_id for each in groups.values() if each.protocol_type in ("", CONSUMERS)]
    for group_id, code, topics in _committed(asker, node_id, names):
        group = groups[group_id]
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            asker.note("offsets of some groups: this user may not describe them")
        elif code:
            groups[group_id] = group._replace(error=known_code(code).name)
        else:
            positions = (
                Position(topic.name, one.partition_index, one.committed_offset, None)
                for topic in topics
                for one in topic.partitions
                if one.committed_offset >= 0 and not one.error_code
            )
            groups[group_id] = group._replace(positions=tuple(sorted(positions, key=_place)))


def _place(position: Position) -> tuple[str, int]:
    return position.topic, position.partition


def _committed(asker: Asker, node_id: int, names: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
    """Group, error code, topics."""
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequestGroup

    if asker.version(node_id, ApiKey.OFFSET_FETCH) >= _SEVERAL_GROUPS:
        for part in _parts(names):
            asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in part]
            answer = asker.ask(node_id, ApiKey.OFFSET_FETCH, groups=asked)
            for one in answer.groups if answer is not None else ():
                yield one.group_id, one.error_code, one.topics
    else:
        for name in names:
            answer = asker.ask(node_id, ApiKey.OFFSET_FETCH, group_id=name, topics=None)
            if answer is not None:
                yield name, answer.error_code, answer.topics


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        end = start + _AT_ONCE
        yield names[start:end]
