"""What the consumer groups of a broker have in common: the topics, the assignors and the settings."""

from collections.abc import Callable, Collection, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.config.group import ConsumerGroupConfig, ConsumerGroupLimits
    from kafka_compat.groups.consumer.assignors.assignor import Assignment, TargetAssignment
    from kafka_compat.groups.consumer.member import Member
    from kafka_compat.long_work import Steps


class Topics(Protocol):
    """The topics of the cluster, as a group sees them."""

    def topic_id(self, name: str) -> "UUID | None":
        """Return the ID of a topic, or None if it does not exist."""

    def topic_name(self, topic_id: "UUID") -> str | None:
        """Return the name of a topic, or None if it does not exist."""

    @property
    def new_topics_version(self) -> int:
        """The version of the metadata in which the last topic was created."""

    @property
    def version(self) -> int:
        """The version of the metadata."""

    @property
    def names(self) -> list[str]:
        """The names of all topics."""

    def existing(self, names: "Collection[str]") -> "Set[str]":
        """Return the names of the topics that exist."""

    def metadata_hash(self, names: "Set[str]") -> int:
        """Return the metadata hash of a group that subscribes to these topics (0: none of them exists)."""


class Assign(Protocol):
    """Computes target assignments."""

    def __call__(
        self,
        assignor: str,
        members: "Mapping[str, Member]",
        targets: "Mapping[str, Assignment]",
        matched: "Callable[[str], frozenset[str]]",
        is_homogeneous: bool,
    ) -> "Steps[TargetAssignment]":
        """Compute the target assignment of a group, in steps. Its order is that of the records. `targets` is
        the former assignment, `matched` returns the topics that match a regular expression ("": none), and
        `is_homogeneous` is true if the assignor is to take the subscriptions of all members as equal.
        """


class ConsumerGroups(NamedTuple):
    """What the consumer groups of a broker have in common."""

    topics: Topics
    assign: Assign
    settings: "Callable[[str], ConsumerGroupConfig]"
    """A function that returns the current settings of a group."""
    limits: "ConsumerGroupLimits"
