"""What handlers of cluster APIs have in common."""

from __future__ import annotations

from typing import cast

from kafka_compat.cluster.broker import ClusterBroker
from kafka_compat.dispatch import RequestContext


def cluster_broker(ctx: RequestContext) -> ClusterBroker:
    """The broker of a request whose API only brokers of a cluster serve."""
    return cast(ClusterBroker, ctx.broker)


NOT_THE_CONTROLLER = "This is not the correct controller for this cluster."
