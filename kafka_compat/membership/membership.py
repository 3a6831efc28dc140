"""What a broker asks of the way it belongs: alone (`lone`), or to a cluster (`kafka_compat.cluster`).

The calls come in this order: `open_store`, `make`, `note_changes`, `take_up`, `register`, then the broker
serves, `settle`; and back: `hand_over`, `leave`, `close`. A start that fails goes straight to `leave` and
`close`, from wherever it is.

Only for types: nothing imports it at run time, since making such a Protocol takes a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_compat.clock import Clock
    from kafka_compat.config import BrokerConfig, TopicToCreate
    from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
    from kafka_compat.membership.foundation import Foundation, Made, Opened
    from kafka_compat.membership.lone_controller import Controller
    from kafka_compat.storage.directories.log_dirs import LoadReport
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators


class Membership(Protocol):
    """See above."""

    async def open_store(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> Opened:
        """Open the store; `config` has the broker's id afterwards, if need be a new one. Raises StartupError.

        `directory` is the first data folder; `stored_cluster_id` is what meta.properties says.
        """

    def make(self, foundation: Foundation) -> Made:
        """Make what this kind of broker has in its own way. Called once, with the store open."""

    async def note_changes(self) -> None:
        """Settings are about to be read: what changes from now on is heard later."""

    async def take_up(self, report: LoadReport) -> None:
        """The logs are loaded: lead what is to be led before anybody asks."""

    async def register(self, broker: BrokerInfo) -> None:
        """Let everyone know that this broker is there. Raises StartupError, as when its id is taken."""

    async def settle(self) -> None:
        """The broker answers requests from now on: return when clients find what they look for."""

    async def await_metadata(self) -> None:
        """Wait for a while until this broker knows its cluster."""

    @property
    def unclean_elections(self) -> int:
        """How many partitions got a leader that may miss records, as far as this broker decided it."""

    def controller(self) -> Controller:
        """The cluster's controller, as far as this broker is it."""

    def marker_writer(self, local: MarkerWriter) -> MarkerWriter:
        """What ends transactions in all partitions; `local` does in those that this broker leads."""

    def coordinators(self, local: Coordinators) -> Coordinators:
        """The coordinators of all transactional ids; `local` are those on this broker."""

    def announce(self, entity_path: str) -> None:
        """The settings of an entity of the store changed: let those know who have to."""

    async def create_wanted_topics(self, wanted: Sequence[TopicToCreate]) -> None:
        """Make the topics of KAFKA_CREATE_TOPICS that are not there; one that cannot be made is logged."""

    async def hand_over(self) -> None:
        """Have others lead what this broker leads, as far as there are any."""

    async def leave(self) -> None:
        """Take part no more; the store stays open. May be called again."""

    async def close(self) -> None:
        """Give back the store, and whatever else is open. Nobody asks for anything afterwards."""
