"""What is there for a broker that is alone, and not for brokers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.http.routes import BadCall
from kafka_compat.membership.lone import LoneMembership

if TYPE_CHECKING:
    from kafka_compat.broker import Broker

_NOT_IMPLEMENTED = 501


def the_lone(brokers: Sequence[Broker[Any]], what: str) -> tuple[Broker[Any], LoneMembership]:
    """The only broker, and how it belongs. BadCall, which names what was asked, where it is one of a
    cluster.
    """
    broker = brokers[0]
    if isinstance(broker.membership, LoneMembership):
        return broker, broker.membership
    raise BadCall(
        f"{what} are there for a broker that is alone, not yet for clusters: start it without --brokers, "
        "--processes and zookeeper.connect",
        _NOT_IMPLEMENTED,
    )
