"""GET /live and GET /ready, for orchestrators and load balancers.

The routes require no authentication. Unlike the log, their responses name neither topics nor directories.
"""

from collections.abc import Awaitable, Callable, Sequence

from kafka_compat.broker import Broker
from kafka_compat.broker.services import BrokerServices
from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.errors import ErrorCode
from kafka_compat.http.routes import Answer, Call, NotNow, Route
from kafka_compat.long_work import Steps, batched


def probes(ready: Callable[[Call], Awaitable[Answer]], readiness: str) -> list[Route]:
    """Return the routes of a process. `ready` answers /ready, and `readiness` documents it."""
    return [
        Route("GET", "/live", _live, "liveness: the event loop responds", for_anybody=True),
        Route(
            "GET", "/ready", ready, f"readiness: {readiness}; otherwise 503 and the reasons", for_anybody=True
        ),
    ]


async def _live(call: Call) -> Answer:
    return {"live": True}


class Health:
    """Health checks for the brokers of this process."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers

    def routes(self) -> list[Route]:
        return probes(self._ready, "the broker serves clients")

    async def _ready(self, call: Call) -> Answer:
        reasons = []
        for broker in list(self._brokers):
            reasons += [f"broker {broker.broker_id}: {reason}" for reason in await _reasons(broker)]
        return NotNow({"ready": False, "reasons": reasons}) if reasons else {"ready": True}


async def _reasons(broker: Broker) -> list[str]:
    if not broker.is_running:
        return ["it is stopping or restarting"]
    services = broker.services
    return await services.long_work.finish(reasons_against(services))


def reasons_against(services: BrokerServices) -> Steps[list[str]]:
    """Return the reasons why a running broker is not ready to serve clients."""
    metadata, reasons = services.metadata, []
    if services.store.state is not SessionState.CONNECTED:
        reasons.append(f"its session with the metadata store is {services.store.state.name.lower()}")
    if metadata.local_id not in metadata.brokers:
        reasons.append("the controller does not list it as a live broker")
    if metadata.controller_id < 0:
        reasons.append("no controller is known")
    failed = len(services.log_dirs.offline)
    if failed:
        reasons.append(f"{failed} of its {len(services.log_dirs.directories)} log directories have failed")
    unknown = yield from _not_taken_up(services)
    if unknown:
        reasons.append(f"{unknown} of its partitions are not ready yet")
    return reasons


def _not_taken_up(services: BrokerServices) -> Steps[int]:
    """Return the number of this broker's replicas for which the controller has not sent a leader yet."""
    found = 0
    replicas, metadata = services.replicas, services.metadata
    local_id = metadata.local_id
    known = ((topic, each) for topic in list(metadata.topics.values()) for each in topic.partitions)
    for some in batched(known):
        for topic, partition in some:
            if (
                local_id in partition.replicas
                and replicas.get(topic.name, partition.partition) is None
                and replicas.missing(topic.name, partition.partition) is not ErrorCode.KAFKA_STORAGE_ERROR
            ):
                found += 1
        yield None
    return found
