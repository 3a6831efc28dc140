"""Whether the metadata of a cluster is about to move between ZooKeeper and a quorum, from the settings."""

from collections.abc import Iterable
from typing import Any, Final, Protocol

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.status.snapshot import Migration

ENABLE: Final = "zookeeper.metadata.migration.enable"
TARGET: Final = "kafka.compat.metadata.store"
_BROKER: Final = 4
"""The type of brokers as resources with settings."""


class Asking(Protocol):
    """The method of an Observer that is needed here."""

    def ask(self, node_id: int, key: ApiKey, **request: Any) -> Any: ...


def ask_migration(observer: Asking, live: Iterable[int]) -> Migration | None:
    """Return the migration for which brokers are prepared, or None. The brokers may not permit the client to
    describe their settings.
    """
    from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

    prepared: list[int] = []
    target = None
    for broker_id in live:
        resource = DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(broker_id), configuration_keys=[ENABLE, TARGET]
        )
        answer = observer.ask(broker_id, ApiKey.DESCRIBE_CONFIGS, resources=[resource])
        found = {
            one.name: one.value
            for result in (answer.results if answer is not None else ())
            for one in result.configs
        }
        if found.get(ENABLE) == "true":
            prepared.append(broker_id)
            target = found.get(TARGET) or target
    return Migration(tuple(prepared), target) if prepared else None
