"""The settings of one topic, and where each comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.page.views.topic import known_topic
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import ResourceType

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_SOURCES: Final = {
    1: "the topic",
    2: "the broker, changed at run time",
    3: "all brokers, changed at run time",
    4: "the broker's settings",
    5: "default",
    6: "the broker's logger",
}
"""As Kafka's ConfigSource, in words."""
OWN: Final = _SOURCES[1]
"""The source of what somebody set for a topic."""


async def see(visit: Visit) -> Data:
    """As DescribeConfigs tells them."""
    topic = known_topic(visit)
    return {"name": topic.name, "settings": await described(visit, ResourceType.TOPIC, topic.name)}


async def described(visit: Visit, kind: int, name: str, broker_id: int | None = None) -> list[dict[str, Any]]:
    """The settings of a topic or a broker, those that somebody set first. BadCall."""
    from kafka_compat.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    answer = await visit.ask(ApiKey.DESCRIBE_CONFIGS, request, broker_id=broker_id)
    (result,) = answer.results
    if result.error_code:
        raise BadCall(result.error_message or f"error {result.error_code}", 403)
    found = [
        {
            "name": each.name,
            "value": None if each.is_sensitive else each.value,
            "is_sensitive": each.is_sensitive,
            "source": _SOURCES.get(each.config_source, "unknown"),
            "is_set": each.config_source < 5,
            "documentation": each.documentation or "",
            "synonyms": [
                {"name": item.name, "value": item.value, "source": _SOURCES.get(item.source, "unknown")}
                for item in each.synonyms
            ],
        }
        for each in result.configs
    ]
    return sorted(found, key=lambda one: (not one["is_set"], one["name"]))
