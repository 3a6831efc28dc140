"""GET /live, /ready and /metrics of a process that is only a controller."""

from collections.abc import AsyncGenerator

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.coordination.raft.values import NO_NODE
from kafka_compat.http.routes import Answer, Call, NotNow, Route, Stream
from kafka_compat.metrics.dialects import Dialect
from kafka_compat.metrics.health import probes
from kafka_compat.metrics.prometheus_text import CONTENT_TYPE, text_of
from kafka_compat.metrics.quorum_beans import of_controller


class ControllerHealth:
    """Health checks for a controller."""

    def __init__(self, process: QuorumProcess, dialect: Dialect) -> None:
        self._process = process
        self._dialect = dialect

    def routes(self) -> list[Route]:
        return [
            *probes(self._ready, "the quorum has a leader"),
            Route("GET", "/metrics", self._metrics, "metrics of the quorum for Prometheus"),
        ]

    async def _metrics(self, call: Call) -> Answer:
        families = of_controller(self._process.node, self._dialect)

        async def pieces() -> AsyncGenerator[bytes, None]:
            yield "".join(text_of(families)).encode()

        return Stream(pieces(), CONTENT_TYPE)

    async def _ready(self, call: Call) -> Answer:
        node = self._process.node
        if node.machine.leader_id == NO_NODE:
            reason = f"controller {node.node_id}: no leader of the metadata quorum is known"
            return NotNow({"ready": False, "reasons": [reason]})
        return {"ready": True}
