"""GET /live and GET /ready of a process that is only a controller."""

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.coordination.raft.values import NO_NODE
from kafka_compat.http.routes import Answer, Call, NotNow, Route


class ControllerHealth:
    """Health checks for a controller."""

    def __init__(self, process: QuorumProcess) -> None:
        self._process = process

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/live", self._live, "liveness: the event loop responds", for_anybody=True),
            Route(
                "GET",
                "/ready",
                self._ready,
                "readiness: the quorum has a leader; otherwise 503 and the reasons",
                for_anybody=True,
            ),
        ]

    async def _live(self, call: Call) -> Answer:
        return {"live": True}

    async def _ready(self, call: Call) -> Answer:
        node = self._process.node
        if node.machine.leader_id == NO_NODE:
            reason = f"controller {node.node_id}: no leader of the metadata quorum is known"
            return NotNow({"ready": False, "reasons": [reason]})
        return {"ready": True}
