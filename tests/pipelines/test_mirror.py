"""kafka-compat pipeline mirror: the target cluster's log, compared with the source cluster's log by
confluent-kafka.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.mirror import MirrorJob, run_mirror
from kafka_compat.pipelines.session import SparkSettings
from kafka_compat.pipelines.stream_job import StreamJob, StreamReport
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish
from tests.support.campaign import enabled
from tests.support.servers import KafkaCompatBroker

SAMPLE = FLIGHTS if enabled() else 24_000


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    server = KafkaCompatBroker(tmp_path_factory.mktemp("mirror-target"))
    server.start()
    yield Cluster(server)
    server.stop()


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_mirror_is_exact_after_a_kill_and_a_rerun(
    kafka: Cluster, other: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the target broker, every record exists once, in order and unchanged."""
    topic = kafka.create_topic(partitions=PARTITIONS)
    other.create_topic(topic, PARTITIONS)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE))
    arguments = ["--bootstrap-server", kafka.address, "--name", "here", "--topic", topic]
    arguments += ["--target", other.address, "--target-name", "there", "--to", str(tmp_path / "mirror")]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]"]
    arguments += ["--offsets-per-batch", str(batch_of(SAMPLE))]
    report = kill_and_finish("mirror", arguments, other.server, longest_s=5.0)
    assert (report["mirrored_total"], report["looped_total"]) == (SAMPLE, 0)
    each = SAMPLE // PARTITIONS
    assert other.ends(topic) == Counter({partition: each for partition in range(PARTITIONS)})
    for partition in range(PARTITIONS):
        pairs = zip(kafka.read(topic, partition, each), other.read(topic, partition, each), strict=True)
        for old, new in pairs:
            assert (new.key(), new.value(), new.timestamp()) == (old.key(), old.value(), old.timestamp())
            headers = new.headers()
            assert headers[:-3] == (old.headers() or [])
            assert headers[-3] == ("kafka-compat-cluster", b"here")
            origin = f"{topic}/{partition}/{old.offset()}".encode()
            assert headers[-1] == ("kafka-compat-origin", origin)
    for path in (tmp_path / "mirror" / "offset_map").glob("*.csv"):
        with path.open(newline="") as file:
            # The target has no foreign records and no gaps, so source and target offsets are equal.
            assert all(line["source_offset"] == line["target_offset"] for line in csv.DictReader(file))


def test_two_opposite_mirrors_do_not_create_a_loop(
    spark: Any, kafka: Cluster, other: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    topic = kafka.create_topic(partitions=2)
    other.create_topic(topic, 2)

    def mirror(source: Cluster, target: Cluster, names: tuple[str, str]) -> StreamReport:
        reading = StreamJob(
            source.address, tmp_path / names[0], [topic], spark=SparkSettings(jars=connector_jars)
        )
        return run_mirror(MirrorJob(reading, names[0], target.address, names[1]))

    kafka.fill(topic, 2, [(b"k", b"here", 1_700_000_000_000, [])] * 10)
    other.fill(topic, 2, [(b"k", b"there", 1_700_000_000_000, [])] * 4)
    assert mirror(kafka, other, ("a", "b")).figures["mirrored_total"] == 10
    back = mirror(other, kafka, ("b", "a"))
    assert (back.figures["mirrored_total"], back.figures["looped_total"]) == (4, 10)
    again = mirror(kafka, other, ("a", "b"))
    totals = (again.figures["mirrored_total"], again.figures["looped_total"])
    assert (again.run.rows, *totals) == (4, 10, 4)
    for cluster in (kafka, other):
        values = Counter(m.value() for p in (0, 1) for m in cluster.read(topic, p, 7))
        assert cluster.ends(topic) == Counter({0: 7, 1: 7})
        assert values == {b"here": 10, b"there": 4}
    with pytest.raises(NotStarted, match="does not exist"):
        reading = StreamJob(
            kafka.address, tmp_path / "c", [kafka.create_topic()], spark=SparkSettings(jars=connector_jars)
        )
        run_mirror(MirrorJob(reading, "a", other.address, "b"))
