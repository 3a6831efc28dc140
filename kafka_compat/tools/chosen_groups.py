"""Select groups and partitions for kafka-consumer-groups, and convert errors to Failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kafka_compat.tools.failure import Failure, executed, illegal_argument, java_int, of_client

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.partitions import TopicPartition
    from kafka_compat.tools.options import Options

SCENARIOS: Final = (
    "to-offset",
    "to-current",
    "to-datetime",
    "from-file",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
)
"""Flags that select the new offsets for --reset-offsets."""


@contextmanager
def awaited(*, runtime: bool = True) -> Iterator[None]:
    """Convert errors in the `with` block to Failures. As in Kafka's command, wrap each error in an
    ExecutionException and, with `runtime`, in a RuntimeException.
    """
    try:
        yield
    except Exception as error:
        found = executed(of_client(error))
        raise Failure("java.lang.RuntimeException", str(found), found) if runtime else found from error


def groups_meant(cluster: Cluster, options: Options) -> list[str]:
    """Return the groups in --group, or all groups with --all-groups. Raises Failure if a request fails."""
    from kafka_compat.client.groups import list_groups as listed

    if not options.has("all-groups"):
        return list(dict.fromkeys(options.values("group")))
    with awaited():
        return [group.group_id for group in listed(cluster)]


def partitions_in(argument: str) -> list[TopicPartition]:
    """Parse the partitions in TOPIC:0,1,2. Raises Failure if the argument is malformed."""
    parts = argument.split(":")
    if len(parts) != 2:
        raise illegal_argument(f"Invalid topic '{argument}', expected TOPIC or TOPIC:PARTITIONS")
    found = []
    for text in parts[1].split(","):
        try:
            found.append((parts[0], java_int(text)))
        except Failure:
            message = f"Invalid partition '{text}' specified in topic arg '{argument}''"
            raise illegal_argument(message) from None
    return found
