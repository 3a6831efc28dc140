"""The cost of pushes with thousands of partitions: delays for clients, CPU time and memory.

Normal runs use 1,000 partitions, and campaigns 10,000.
"""

from __future__ import annotations

from pathlib import Path

from kafka_compat.metrics.replica_beans import FAMILIES
from tests.otlp.receiver import Receiver
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker
from tests.transactions.programs import create_topic

TOPICS = 10
PARTITIONS = campaign.rounds(100, 1_000)
PUSHES = campaign.rounds(2, 5)
# Normal runs share the machine with other tests.
STALL_MS_MAX = campaign.rounds(250, 20)
MEMORY_MAX = 24 * 1024 * 1024


def test_a_push_of_many_partitions_does_not_delay_requests(tmp_path: Path) -> None:
    receiver = Receiver(free_port())
    told_at = {"kafka.compat.otlp.endpoint": receiver.url, "kafka.compat.otlp.interval.ms": "1000"}
    broker = KafkaCompatBroker(tmp_path, told_at)
    broker.start()
    try:
        for number in range(TOPICS):
            create_topic(broker.address, f"topic-{number}", PARTITIONS)
        before = broker.resident_bytes()
        with receiver:
            receiver.next_push()
            cpu_s, requests = broker.cpu_seconds(), len(receiver.requests)
            with Bystander(broker.port, broker.pid, interval_ms=2) as bystander:
                pushes = [receiver.next_push() for _ in range(PUSHES)]
            cpu_s, requests = broker.cpu_seconds() - cpu_s, len(receiver.requests) - requests
        grown = broker.resident_bytes() - before
    finally:
        broker.stop()
    of_push = len(pushes[0].times_ns)
    print(
        f"{TOPICS * PARTITIONS} partitions: {len(pushes[0].samples)} points in {of_push} requests; clients "
        f"waited {bystander.worst_ms:.1f} ms at most, {bystander.worst_wall_ms:.1f} ms including waits for a "
        f"processor; {cpu_s / requests * of_push:.2f} s of CPU time for a push; memory grew by "
        f"{grown / 1024 / 1024:.1f} MiB"
    )
    of_partitions = [key for key in pushes[-1].samples if {"topic", "partition"} <= dict(key[1]).keys()]
    assert len(of_partitions) == TOPICS * PARTITIONS * (7 + len(FAMILIES))
    assert bystander.worst_ms < STALL_MS_MAX
    assert grown < MEMORY_MAX
