"""What a broker can do with topics, however it belongs. Only for types: nothing imports it at run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kafka_compat.metadata.topic_rules import CHANGE_TIMEOUT_MS, DEFAULT, Charge

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import TopicMetadata


class Topics(Protocol):
    """The topics, as this broker makes and changes them. All raise KafkaError with what the client gets.

    `timeout_ms` is how long a cluster may take to carry a change out; a broker that is alone does so at once.
    `charge` is called after all checks.
    """

    async def create(
        self,
        name: str,
        *,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        assignments: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
        charge: Charge | None = None,
    ) -> TopicMetadata:
        """Make a topic, and return when it is led."""

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        validate_only: bool,
        timeout_ms: int = CHANGE_TIMEOUT_MS,
        charge: Charge | None = None,
    ) -> None:
        """Give a topic `count` partitions in all."""

    async def delete(self, name: str, timeout_ms: int = CHANGE_TIMEOUT_MS) -> None:
        """Drop a topic with its logs and settings."""

    async def ensure(
        self,
        name: str,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> TopicMetadata:
        """The topic, made when there is none of its name."""

    async def auto_create(self, name: str, charge: Charge | None = None) -> TopicMetadata:
        """The topic, made with the broker's defaults when there is none (auto.create.topics.enable)."""

    async def ensure_internal(self, name: str) -> TopicMetadata:
        """One of the broker's own topics, made when there is none."""

    async def note_offline(self, lost: Iterable[tuple[str, int]]) -> None:
        """Let everyone know that these partitions are not led here any more: their disk failed."""
