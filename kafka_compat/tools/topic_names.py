"""Which topics a command line means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_compat.tools import show
from kafka_compat.tools.failure import illegal_argument

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.tools.options import Options

INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
TIMEOUT_MS: Final = 60_000
"""How long brokers may take, in requests that say it."""


def topics(cluster: Cluster, options: Options) -> list[str]:
    """The names that --topic means among those that there are, sorted."""
    answer = cluster.metadata(None, "listTopics")
    hidden = INTERNAL if options.has("exclude-internal") else ()
    found = sorted(each.name for each in answer.topics if each.name not in hidden)
    wanted = options.value("topic")
    if wanted is None:
        return found
    matches = show.topic_filter(wanted).fullmatch
    return [name for name in found if matches(name)]


def ensure_exists(found: list[Any], options: Options, flag: str = "topic") -> None:
    """Raises Failure where what was asked for by name is not there, unless --if-exists."""
    wanted = options.value(flag)
    if wanted and not found and not options.has("if-exists"):
        if flag == "topic-id":
            raise illegal_argument(f"TopicId '{wanted}' does not exist as expected")
        raise illegal_argument(f"Topic '{wanted}' does not exist as expected")
