"""Startup and idle memory of three combined nodes of a metadata quorum.

python -m tests.bench.quorum_start [--pairs 3] [--compiled] [--json]

This broker and Apache Kafka 4.4.0 (the heap of its start script) are compared in pairs of runs, in the order
A B, B A, A B, … Each run uses new, formatted directories; formatting is not measured. The time begins with
the start of the first process, and ends when a client has written a record with acks=all to a topic with
replication factor 3 that it has created. The client sends its requests over plain sockets and retries every 5
ms, so that no client's pauses count. Idle memory is the resident memory of the three processes 5 s later.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.bench import in_pairs, quorum_sides, sides
from tests.bench.progress import Progress
from tests.bench.quorum_client import ClusterClient
from tests.bench.quorum_sides import QuorumSide

COLUMNS = {"seconds": "time", "cpu_seconds": "broker CPU", "idle_bytes": "idle memory"}
IDLE_S = 5.0
STEPS = 1


def run(side: QuorumSide, progress: Progress) -> in_pairs.Figures:
    """Start a side, and return its figures."""
    progress.step(f"{side.label}: start")
    side.prepare()
    sides.prewarm_memory()
    client = ClusterClient({broker_id: node.port for broker_id, node in side.brokers.items()})
    try:
        began_s = time.perf_counter()
        side.launch()
        client.create_topic("first", replicas=len(side.brokers))
        client.produce("first")
        elapsed_s = time.perf_counter() - began_s
        cpu_s = side.cpu_seconds()
        sides.idle(IDLE_S)
        idle_bytes = side.resident_bytes()
    finally:
        client.close()
        side.kill()
    return {"three nodes": {"seconds": elapsed_s, "cpu_seconds": cpu_s, "idle_bytes": float(idle_bytes)}}


def main(argv: Sequence[str] | None = None) -> None:
    parser = in_pairs.new_parser("quorum_start", __doc__)
    arguments = parser.parse_args(argv)
    in_pairs.compare_sides(
        arguments,
        quorum_sides.makers(arguments, quorum_sides.COMBINED),
        run,
        steps=STEPS,
        columns=COLUMNS,
        title="Three combined nodes, until a record is written with replication factor 3",
    )


if __name__ == "__main__":
    main()
