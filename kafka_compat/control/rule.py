"""Rules of the control API: which requests to match, and which fault to apply. No I/O.

The topics, groups and transactional IDs of a request are found by field names, which are the same in all
APIs.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka_compat.api.stages import StagedContext
from kafka_compat.control import subjects
from kafka_compat.control.fault import Fault
from kafka_compat.control.subjects import IsMeant, Subject
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import fields_of
from kafka_compat.storage.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION

_FLIPPED_MAX = 8
_START_BYTES = 8
"""Length of the size and correlation ID fields, which stay intact so that clients can match responses."""
_BATCH_LENGTH = slice(8, LOG_OVERHEAD)


def corrupt(chance: random.Random) -> Callable[[bytes], bytes]:
    """Return a function that flips one bit in each of up to eight bytes after a response's correlation ID."""
    return lambda whole: _flipped(whole, _START_BYTES, len(whole), chance)


def corrupt_records(
    response: Any,
    subjects: list[Subject],
    is_meant: IsMeant,
    is_due: Callable[[], bool],
    chance: random.Random,
) -> None:
    """Corrupt the first batch of each partition that `is_meant` selects, if `is_due` returns True."""
    meant = {
        (subject.known_as, subject.partition)
        for subject in subjects
        if is_meant(subject.topic, subject.partition)
    }
    found = [
        data
        for topic in response.responses
        for data in topic.partitions
        if data.records
        and any(
            (known_as, data.partition_index) in meant
            for known_as in (topic.topic_id, getattr(topic, "topic", ""))
        )
    ]
    if found and is_due():
        for data in found:
            records = bytes(data.records.read() if hasattr(data.records, "read") else data.records)
            end = LOG_OVERHEAD + int.from_bytes(records[_BATCH_LENGTH], "big")
            start = HEADER_SIZE if end > HEADER_SIZE else MAGIC_POSITION + 1
            data.records = _flipped(records, start, min(end, len(records)), chance)


def _flipped(whole: bytes, start: int, end: int, chance: random.Random) -> bytes:
    changed = bytearray(whole)
    places = range(start, end)
    for place in chance.sample(places, min(_FLIPPED_MAX, len(places))):
        changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


_FIELDS = {
    "topic": frozenset(("topic", "topic_name", "topic_names", "subscribed_topic_names", "name")),
    "group": frozenset(
        ("group_id", "group", "group_ids", "groups", "groups_names", "key", "coordinator_keys")
    ),
    "transactional_id": frozenset(("transactional_id", "transactional_ids", "key", "coordinator_keys")),
}
"""Maps each criterion of a rule to the request fields that may contain its value."""
_FETCHES = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
"""APIs with sessions: a request need not list all its partitions."""
_TOPIC = _FIELDS["topic"] | {"topic_id", "topic_ids"}


@dataclass(slots=True)
class Rule:
    """A rule that applies a fault to matching requests. A criterion that is None matches all requests."""

    number: int
    fault: Fault
    """The fault to apply, unless `corrupts` is true."""
    asked: dict[str, Any]
    """The body of the HTTP request that created the rule."""
    api: int | None = None
    version: int | None = None
    client_id: str | None = None
    broker: int | None = None
    """ID of the broker that receives the request."""
    partition: int | None = None
    named: dict[str, str] = field(default_factory=dict)
    """Required topic, group and transactional ID of the request, by the keys of `_FIELDS`."""
    corrupts: bool = False
    """Whether to corrupt responses or, for Fetch and ShareFetch, the records in them."""
    skip: int = 0
    """Number of matching requests to skip before the first hit."""
    count: int | None = None
    """Maximum number of requests to hit, or None for no limit."""
    probability: float = 1.0
    chance: random.Random = field(default_factory=random.Random)
    hits: int = 0

    def _fits(self, ctx: StagedContext, request: Any) -> bool:
        return (
            self.api in (None, ctx.api_key)
            and self.version in (None, ctx.api_version)
            and self.client_id in (None, ctx.client_id)
            and self.broker in (None, ctx.services.metadata.local_id)
            and self._is_about(ctx, request)
        )

    def _is_about(self, ctx: StagedContext, request: Any) -> bool:
        if self.partition is not None or ("topic" in self.named and ctx.api_key in _FETCHES):
            if not any(self._is_meant(*subject[:2]) for subject in subjects.subjects(ctx, request)):
                return False
            return all(self._names(ctx, request, name) for name in self.named if name != "topic")
        return all(self._names(ctx, request, name) for name in self.named)

    def _names(self, ctx: StagedContext, request: Any, name: str) -> bool:
        value = self.named[name]
        if name == "topic" and (known := ctx.services.metadata.topics.get(value)) is not None:
            return any(each in (value, known.topic_id) for each in _values(request, _TOPIC))
        return value in _values(request, _FIELDS[name])

    def _is_meant(self, topic: str | None, partition: int) -> bool:
        return self.named.get("topic") in (None, topic) and self.partition in (None, partition)

    def _fault_of(self, ctx: StagedContext, request: Any) -> Fault:
        if self.corrupts:
            return Fault(mangle=corrupt(self.chance))
        error = self.fault.error
        if error is not None and (self.partition is not None or "topic" in self.named):
            amend = subjects.fail(ctx, request, error, self._is_meant)
            if amend is not None:
                return Fault(amend=amend)
        return self.fault

    def fault_for(self, ctx: StagedContext, request: Any) -> Fault | None:
        """Return the fault that this rule applies to a request, or None if the rule does not apply."""
        if self._is_used_up or not self._fits(ctx, request):
            return None
        if self.corrupts and ctx.api_key in _FETCHES:
            return self._corrupts_records(ctx, request)
        return self._fault_of(ctx, request) if self._hit() else None

    def _corrupts_records(self, ctx: StagedContext, request: Any) -> Fault:
        """Return the fault for a Fetch or ShareFetch request. A response without records does not count as a
        hit.
        """
        about = list(subjects.subjects(ctx, request))
        return Fault(
            amend=lambda response: corrupt_records(response, about, self._is_meant, self._hit, self.chance)
        )

    def _hit(self) -> bool:
        if not self._is_due():
            return False
        self.hits += 1
        return True

    @property
    def _is_used_up(self) -> bool:
        return self.count is not None and self.hits >= self.count

    def _is_due(self) -> bool:
        """Count down `skip`, and return whether to apply the fault to this matching request."""
        if self._is_used_up:
            return False
        if self.skip:
            self.skip -= 1
            return False
        return self.probability >= 1 or self.chance.random() < self.probability


def _values(message: Any, names: frozenset[str]) -> Iterator[str | UUID]:
    """Yield the text and UUID values of all fields with these names, at any depth of a message."""
    for spec in fields_of(type(message)):
        value = getattr(message, spec.name)
        if isinstance(value, str | UUID):
            if spec.name in names:
                yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, str | UUID):
                    if spec.name in names:
                        yield item
                elif hasattr(type(item), "__fields__"):
                    yield from _values(item, names)
        elif hasattr(type(value), "__fields__"):
            yield from _values(value, names)
