"""Find the partitions in a request, and build a response that fails only some of them.

`api.error_response.ECHOES` lists the arrays of partitions in requests, and the corresponding arrays in
responses. The partitions of a session (KIP-227, KIP-932) are part of each fetch in the session.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from kafka_compat.api.error_response import ECHOES, Echo, error_response
from kafka_compat.api.stages import StagedContext
from kafka_compat.errors import KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.fetch import FetchableTopicResponse, PartitionData
from kafka_compat.share_partitions.share_session import INITIAL_EPOCH, SessionKey

IsMeant = Callable[[str | None, int], bool]
"""Whether a rule applies to a partition, given its topic's name (or None if unknown) and number."""


class Subject(NamedTuple):
    """A partition in a request. `known_as` is the topic's name or ID, whichever the request contains."""

    topic: str | None
    partition: int
    known_as: str | UUID


def subjects(ctx: StagedContext, request: Any) -> Iterator[Subject]:
    """Yield the partitions in a request and, for Fetch and ShareFetch, in its session."""
    if ctx.api_key is ApiKey.FETCH:
        yield from _fetched(ctx, request)
        return
    if ctx.api_key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
        yield from _shared(ctx, request)
        return
    for echo, inner in _by_partition(ctx):
        for item in getattr(request, str(echo.of)) or ():
            known_as = _topic_of(item, echo)
            for part in getattr(item, str(inner.of)) or ():
                yield Subject(_name(ctx, known_as), _number(part, inner), known_as)


def fail(
    ctx: StagedContext, request: Any, error: KafkaError, is_meant: IsMeant
) -> Callable[[Any], None] | None:
    """Return a function that adds errors to the response, for the partitions that `is_meant` selects. Except
    for Fetch, remove these partitions from the request. Return None if no partitions would remain in it.
    """
    if ctx.api_key is ApiKey.FETCH:
        return _fail_fetched(ctx, request, error, is_meant)
    if ctx.api_key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
        # The session would acquire the records of a failed partition, so the whole request fails.
        return None
    found = list(subjects(ctx, request))
    if not found or all(is_meant(subject.topic, subject.partition) for subject in found):
        return None
    meant = _taken_out(ctx, request, is_meant)
    failed: Any = error_response(ctx.api_key, ctx.api_version, meant, error.code, error.message)

    def amend(response: Any) -> None:
        for echo, inner in _by_partition(ctx):
            served = getattr(response, echo.into)
            for topic in getattr(failed, echo.into):
                known = next((each for each in served if _is_same(each, topic, echo)), None)
                if known is None:
                    served.append(topic)
                else:
                    getattr(known, inner.into).extend(getattr(topic, inner.into))

    return amend


def _taken_out(ctx: StagedContext, request: Any, is_meant: IsMeant) -> Any:
    meant = type(request)()
    if ctx.api_key is ApiKey.PRODUCE:
        meant.acks = request.acks or 1
    for echo, inner in _by_partition(ctx):
        kept, taken = [], []
        for item in getattr(request, str(echo.of)) or ():
            topic = _name(ctx, _topic_of(item, echo))
            parts = getattr(item, str(inner.of)) or []
            of_it = [part for part in parts if is_meant(topic, _number(part, inner))]
            if of_it:
                other = type(item)(**{name: getattr(item, name) for name in echo.fields.values()})
                setattr(other, str(inner.of), of_it)
                taken.append(other)
                setattr(item, str(inner.of), [part for part in parts if part not in of_it])
            if getattr(item, str(inner.of)):
                kept.append(item)
        setattr(request, str(echo.of), kept)
        setattr(meant, str(echo.of), taken)
    return meant


def _by_partition(ctx: StagedContext) -> Iterator[tuple[Echo, Echo]]:
    for echo in ECHOES.get(ctx.api_key, ()):
        inner = echo.inner
        if (
            echo.low <= ctx.api_version <= echo.high
            and inner is not None
            and isinstance(echo.of, str)
            and isinstance(inner.of, str)
            and next(iter(echo.fields), "") in ("name", "topic")
        ):
            yield echo, inner


def _topic_of(item: Any, echo: Echo) -> str | UUID:
    name: str | None
    name, *others = (getattr(item, known_as) for known_as in echo.fields.values())
    return name or next(iter(others), "")


def _is_same(one: Any, other: Any, echo: Echo) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in echo.fields)


def _number(part: Any, inner: Echo) -> int:
    known_as = next(iter(inner.fields.values()))
    return int(getattr(part, known_as) if known_as else part)


def _name(ctx: StagedContext, known_as: str | UUID) -> str | None:
    if isinstance(known_as, str):
        return known_as
    name: str | None = ctx.services.metadata.topic_name(known_as)
    return name


# --- Fetch


def _fetched(ctx: StagedContext, request: Any) -> Iterator[Subject]:
    seen: dict[tuple[str | UUID, int], None] = {}
    for target in ctx.services.fetch_sessions.targets(request.session_id):
        seen[target.topic, target.partition] = None
    by_id = ctx.api_version >= 13
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            seen.pop((topic.topic_id if by_id else topic.topic, partition), None)
    for topic in request.topics:
        for asked in topic.partitions:
            seen[topic.topic_id if by_id else topic.topic, asked.partition] = None
    for known_as, partition in seen:
        yield Subject(_name(ctx, known_as), partition, known_as)


def _shared(ctx: StagedContext, request: Any) -> Iterator[Subject]:
    seen: dict[tuple[UUID, int], None] = {}
    session = ctx.services.share_partitions.sessions.get(SessionKey(request.group_id, request.member_id))
    if ctx.api_key is ApiKey.SHARE_FETCH:
        if session is not None and request.share_session_epoch != INITIAL_EPOCH:
            seen.update(dict.fromkeys(session.partitions))
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                seen.pop((topic.topic_id, partition), None)
    for topic in request.topics:
        for asked in topic.partitions:
            seen[topic.topic_id, asked.partition_index] = None
    for topic_id, partition in seen:
        yield Subject(_name(ctx, topic_id), partition, topic_id)


def _fail_fetched(
    ctx: StagedContext, request: Any, error: KafkaError, is_meant: IsMeant
) -> Callable[[Any], None]:
    meant = [subject for subject in subjects(ctx, request) if is_meant(subject.topic, subject.partition)]
    # Do not wait, because Kafka returns Fetch responses with errors immediately.
    request.max_wait_ms = 0

    def amend(response: Any) -> None:
        if response.error_code:
            return
        for subject in meant:
            failed = PartitionData(
                partition_index=subject.partition, error_code=error.code, high_watermark=-1, records=b""
            )
            topic = next((each for each in response.responses if _is_topic(each, subject.known_as)), None)
            if topic is None:
                topic = FetchableTopicResponse(partitions=[])
                setattr(topic, "topic" if isinstance(subject.known_as, str) else "topic_id", subject.known_as)
                response.responses.append(topic)
            topic.partitions = [
                each for each in topic.partitions if each.partition_index != subject.partition
            ]
            topic.partitions.append(failed)

    return amend


def _is_topic(topic: FetchableTopicResponse, known_as: str | UUID) -> bool:
    return known_as == (topic.topic if isinstance(known_as, str) else topic.topic_id)
