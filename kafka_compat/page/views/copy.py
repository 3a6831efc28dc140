"""Copy a topic: a fork on a standalone broker, else record by record in the background."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.control.forks import copy_positions
from kafka_compat.control.topic_fork import fork_topic
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import BadCall
from kafka_compat.page import fields
from kafka_compat.page.copying import copy_records
from kafka_compat.page.view import Done
from kafka_compat.page.views.topic import known_topic, named_topic
from kafka_compat.page.views.topic_settings import OWN, described
from kafka_compat.page.visit import path_of
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import TopicMetadata
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

BODY: Final = {
    "name": "string: the topic that is copied",
    "target": "string: the name of the copy",
    "groups": "boolean: groups get the same positions there (on a standalone broker)",
}
_CREATE_VERSION: Final = 7
_TIMEOUT_MS: Final = 30_000
_CONFLICT: Final = 409


async def see(visit: Visit) -> Data:
    """What the form needs, and the copies of this process."""
    topic = known_topic(visit)
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "is_fork": _is_standalone(visit),
        "copies": [
            each.as_data()
            for each in visit.observed.copies.all
            if visit.rights.may_see_topic(each.source) and visit.rights.may_see_topic(each.target)
        ],
    }


async def act(visit: Visit) -> Done:
    """Begin it; a fork is done at once."""
    topic = named_topic(visit, fields.needed(visit.body, "name"))
    target = fields.needed(visit.body, "target")
    with_groups = fields.is_on(visit.body, "groups")
    visit.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    visit.rights.require(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
    visit.rights.require(Operation.WRITE, ResourceType.TOPIC, target)
    if not visit.rights.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        visit.rights.require(Operation.CREATE, ResourceType.TOPIC, target)
    if topic.is_internal:
        raise BadCall(f"{topic.name} is the brokers' own: it is not copied")
    if _is_standalone(visit):
        groups = await _fork(visit, topic.name, target, with_groups=with_groups)
        return Done(
            {"name": topic.name, "target": target, "state": "done", "groups": groups},
            path_of("/topic", name=target),
        )
    if with_groups:
        raise BadCall("groups: positions are copied with a topic by a standalone broker, not in a cluster")
    await _make(visit, topic, target)
    copy = visit.observed.copies.begin(topic.name, target, partial(copy_records, look=visit.anew))
    return Done({"name": topic.name, **copy.as_data()}, path_of("/copy", name=topic.name))


def _is_standalone(visit: Visit) -> bool:
    return bool(visit.cluster.services[0].membership.is_standalone)


async def _fork(visit: Visit, source: str, target: str, *, with_groups: bool) -> list[str]:
    """The groups that got positions."""
    groups: list[str] = []

    async def then() -> None:
        wanted = [
            group_id
            for coordinator in visit.cluster.coordinators()
            for group_id in coordinator.group_ids()
            if visit.rights.may(Operation.READ, ResourceType.GROUP, group_id)
        ]
        groups.extend(await copy_positions(visit.cluster.services, source, target, wanted))

    async def nothing() -> None: ...

    try:
        await fork_topic(visit.cluster.services, source, target, then if with_groups else nothing)
    except KafkaError as error:
        raise BadCall(f"{error.code.name} {error.message or ''}".strip(), _CONFLICT) from None
    return sorted(groups)


async def _make(visit: Visit, topic: TopicMetadata, target: str) -> None:
    """A topic like it. BadCall."""
    from kafka_compat.protocol.messages.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )

    settings = await described(visit, ResourceType.TOPIC, topic.name)
    configs = [
        CreatableTopicConfig(name=each["name"], value=each["value"])
        for each in settings
        if each["source"] == OWN
    ]
    wanted = CreatableTopic(
        name=target,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )
    answer = await visit.ask(
        ApiKey.CREATE_TOPICS,
        CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS),
        version=_CREATE_VERSION,
        broker_id=visit.cluster.metadata.controller_id,
    )
    (result,) = answer.topics
    if result.error_code:
        raise BadCall(f"{ErrorCode(result.error_code).name} {result.error_message or ''}".strip(), _CONFLICT)
