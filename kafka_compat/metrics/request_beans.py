"""Kafka's metrics for requests, topic traffic, and client quotas."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from kafka_compat.api.request_counts import CONSUMER, FOLLOWER, Times
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.cluster_view import RunningBroker
from kafka_compat.metrics.dialects import NO_TAGS, Bean, Tags
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.json_form import api_name
from kafka_compat.quotas.client_quota_manager import CHANGES, FETCH, PRODUCE, TIME, Used
from kafka_compat.quotas.precedence import Owner
from kafka_compat.replication.counts import TopicCounts

_COLUMNS: Final[Mapping[str, str]] = {
    "TotalTimeMs": "total",
    "RequestQueueTimeMs": "queue",
    "LocalTimeMs": "local",
    "RemoteTimeMs": "remote",
    "ThrottleTimeMs": "throttle",
    "ResponseSendTimeMs": "send",
    "RequestBytes": "size",
}
_NEVER_WAITS: Final = "ResponseQueueTimeMs"
"""Time that responses wait in a queue: always 0, because complete responses are written immediately."""


def _requests(name: str) -> Bean:
    return Bean("network", "RequestMetrics", name)


_CODES: Final = {int(code): code.name for code in ErrorCode}


def requests(brokers: Sequence[RunningBroker], beans: Beans, *, all_apis: bool) -> Steps[None]:
    """Add request counts, error codes and times. `all_apis=False` limits them to Produce and Fetch."""
    yield None
    few = (ApiKey.PRODUCE, ApiKey.FETCH)
    for key in sorted({key for each in brokers for key in each.served if all_apis or key in few}):
        counts, errors = _of_api(brokers, key)
        name = api_name(ApiKey(key))
        _count(beans, name, counts)
        for code, count in sorted(errors.items()):
            tags = {"request": name, "error": _CODES.get(code, str(code))}
            beans.counter(_requests("ErrorsPerSec"), count, tags)
        yield from _times(brokers, beans, name, sum(counts.values()))
        if key == ApiKey.FETCH:
            followers = {
                version: sum(each.partitions.follower_fetches.get(version, 0) for each in brokers)
                for version in counts
            }
            consumers = {version: max(count - followers[version], 0) for version, count in counts.items()}
            for kind, those in ((FOLLOWER, followers), (CONSUMER, consumers)):
                _count(beans, kind, {version: count for version, count in those.items() if count})
                yield from _times(brokers, beans, kind, sum(those.values()))


def _of_api(brokers: Sequence[RunningBroker], key: int) -> tuple[dict[int, int], dict[int, int]]:
    versions: dict[int, int] = {}
    codes: dict[int, int] = {}
    for each in brokers:
        for of_key, version, count in each.requests.requests:
            if of_key == key:
                versions[version] = versions.get(version, 0) + count
        found = each.requests.codes.get(key)
        if found is not None:
            for code, count in ((0, found.good), *list(found.errors.items())):
                if count:
                    codes[code] = codes.get(code, 0) + count
    return versions, codes


def _count(beans: Beans, name: str, counts: Mapping[int, int]) -> None:
    for version, count in sorted(counts.items()):
        beans.counter(_requests("RequestsPerSec"), count, {"request": name, "version": str(version)})


def _times(brokers: Sequence[RunningBroker], beans: Beans, name: str, count: int) -> Steps[None]:
    seen: list[Times] = [each.requests.times[name] for each in brokers if name in each.requests.times]
    tags = {"request": name}
    for bean_name, column in _COLUMNS.items():
        ordered = sorted(value for times in seen for value in times.sorted(column)) if seen else ()
        beans.distribution(_requests(bean_name), count, ordered, tags)
        if seen:
            yield None
    beans.distribution(_requests(_NEVER_WAITS), count, (), tags)


def topics(brokers: Sequence[RunningBroker], beans: Beans) -> Steps[None]:
    """Add BrokerTopicMetrics, summed over all topics and for each topic with traffic."""
    for each in brokers:
        _topic(beans, each.partitions.total(), NO_TAGS)
        for number, (name, of_topic) in enumerate(list(each.partitions.topics.items())):
            if number % 100 == 0:
                yield None
            _topic(beans, of_topic, {"topic": name})


def _topic(beans: Beans, counts: TopicCounts, tags: Tags) -> None:
    """Add the metrics of a topic. As in Kafka, events that never occurred have no samples."""
    values = {
        "MessagesInPerSec": counts.records_in,
        "BytesInPerSec": counts.bytes_in,
        "BytesOutPerSec": counts.bytes_out,
        "BytesRejectedPerSec": counts.bytes_rejected,
        "FailedProduceRequestsPerSec": counts.failed_produces,
        "FailedFetchRequestsPerSec": counts.failed_fetches,
        "TotalProduceRequestsPerSec": counts.produces,
        "TotalFetchRequestsPerSec": counts.fetches,
    }
    if not tags:
        values["ReplicationBytesInPerSec"] = counts.replicated_bytes_in
        values["ReplicationBytesOutPerSec"] = counts.replicated_bytes_out
        values["ProduceMessageConversionsPerSec"] = counts.converted_in
        values["FetchMessageConversionsPerSec"] = counts.converted_out
        values["InvalidMessageCrcRecordsPerSec"] = counts.corrupt_in
        values["InvalidOffsetOrSequenceRecordsPerSec"] = counts.misplaced_in
        values["NoKeyCompactedTopicRecordsPerSec"] = counts.keyless_in
    for name, value in values.items():
        if value or not tags:
            beans.counter(Bean("server", "BrokerTopicMetrics", name), value, tags)


_RATES: Final[Mapping[str, str]] = {
    PRODUCE: "byte-rate",
    FETCH: "byte-rate",
    TIME: "request-time",
    CHANGES: "mutation-rate",
}


def quotas(brokers: Sequence[RunningBroker], beans: Beans) -> Steps[None]:
    """Add the quota use of clients: the MBean types Produce, Fetch, Request and ControllerMutation.

    With several brokers, quota use is summed, and the longest throttle time is reported.
    """
    throttled: dict[tuple[str, Owner], float] = {}
    for each in brokers:
        enforcement = each.services.quotas
        if enforcement is None:
            continue
        for some in batched(list(enforcement.used()), 100):
            for used in some:
                _add_quota(used, beans)
                key = used.resource, used.owner
                throttled[key] = _longer(throttled.get(key, math.nan), used.throttle_ms)
            yield None
    for longest in batched(list(throttled.items()), 100):
        for (resource, owner), throttle_ms in longest:
            beans.quota(resource, "throttle-time", throttle_ms, _client(owner))
        yield None


def _longer(first_ms: float, second_ms: float) -> float:
    if math.isnan(first_ms):
        return second_ms
    return first_ms if math.isnan(second_ms) else max(first_ms, second_ms)


def _add_quota(used: Used, beans: Beans) -> None:
    client = _client(used.owner)
    beans.quota(used.resource, _RATES[used.resource], used.rate, client)
    if used.tokens is not None:
        beans.quota(used.resource, "tokens", used.tokens, client)


def _client(owner: Owner) -> dict[str, str]:
    """Return the labels of a client. As in Kafka, empty labels are omitted."""
    user, client_id = owner
    return {tag: value for tag, value in (("user", user), ("client-id", client_id)) if value}
