"""What is there for a broker that is alone, and not for brokers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.http.routes import BadCall

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.cluster.membership import Membership

_NOT_IMPLEMENTED = 501


def the_lone(brokers: Sequence[Broker[Any]], what: str) -> tuple[Broker[Any], Membership]:
    """The only broker, and how it belongs. BadCall, which names what was asked, where it is one of a
    cluster.
    """
    broker = brokers[0]
    membership: Membership = broker.membership
    if membership.is_standalone:
        return broker, membership
    raise BadCall(
        f"{what} are there for a broker that is alone, not yet for clusters: start it without --brokers, "
        "--processes and zookeeper.connect",
        _NOT_IMPLEMENTED,
    )
