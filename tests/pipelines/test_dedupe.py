"""kafka-compat pipeline dedupe: the remaining records, compared with a plain loop over the same input."""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_compat.pipelines.dedupe import id_expression, without_repeats
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 8_000
MINUTE_MS = 60_000
EVERY = 20


def fill(kafka: Cluster, topic: str) -> None:
    """Write every flight, flight i to partition i % PARTITIONS, and every twentieth flight twice."""
    producer: Any = kafka.producer(**{"queue.buffering.max.messages": 1_000_000})
    for i, (key, value, when, headers) in enumerate(flights(SAMPLE)):
        for _ in range(2 if i % EVERY == 0 else 1):
            producer.produce(topic, value, key, i % PARTITIONS, timestamp=when, headers=headers)
        if i % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_dedupe_is_exact_after_a_kill_and_a_rerun(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the broker, each flight is in the output exactly once, in order."""
    topic, copy = kafka.create_topic(partitions=PARTITIONS), kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic)
    written = SAMPLE + (SAMPLE + EVERY - 1) // EVERY
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", copy]
    arguments += ["--to", str(tmp_path / "dedupe"), "--within", "400d", "--master", "local[2]"]
    arguments += ["--jars", str(connector_jars), "--offsets-per-batch", str(batch_of(written))]
    report = kill_and_finish("dedupe", arguments, kafka.server)
    expected: dict[int, list[bytes]] = defaultdict(list)
    for i, (_, value, _, _) in enumerate(flights(SAMPLE)):
        expected[i % PARTITIONS].append(value)
    assert kafka.ends(copy) == Counter({p: len(values) for p, values in expected.items()})
    for partition, values in expected.items():
        assert [m.value() for m in kafka.read(copy, partition, len(values))] == values
    assert (report["kept"], report["repeated"], report["late"]) == (SAMPLE, written - SAMPLE, 0)


def test_duplicates_within_a_period_are_removed_across_several_runs(
    spark: Any, kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """Ids are remembered and later forgotten. Late records and records without an id are counted."""
    topic = kafka.create_topic()
    start = 1_700_000_000_000
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", f"{topic}-once"]
    arguments += ["--to", str(tmp_path / "dedupe"), "--jars", str(connector_jars), "--create"]
    arguments += ["--within", "1h", "--by", "header:id"]

    def run(*records: tuple[int, bytes | None]) -> tuple[int, ...]:
        """Write (minute, id) records and run the job. Return the totals of kept, repeated, late, id-less and
        remembered records.
        """
        headers = [[("id", b"other"), ("id", name)] if name else [] for _, name in records]
        times = [start + minute * MINUTE_MS for minute, _ in records]
        kafka.fill(topic, 1, [(None, str(t).encode(), t, h) for t, h in zip(times, headers, strict=True)])
        report = run_here("dedupe", *arguments)
        names = ("kept", "repeated", "late", "without_id", "remembered")
        return tuple(report[name] for name in names)

    # In one batch, a record one hour after the first one is a repetition; a later record is not. A record
    # with a timestamp 190 years ahead is remembered, and does not make other records late.
    ahead = (100_000_000, b"z")
    assert run(ahead, (0, b"a"), (60, b"a"), (61, b"a"), (30, b"b"), (0, None), (0, None)) == (6, 1, 0, 2, 4)
    # The watermark is now at minute 1, so minute 0 is late. Id b is remembered since minute 30.
    assert run((0, b"a"), (1, b"a"), (90, b"b"), (91, b"b"), (62, b"c")) == (8, 3, 1, 2, 6)
    # At minute 400, all ids from before minute 280 are forgotten.
    assert run((400, b"d")) == (9, 3, 1, 2, 2)
    assert run((300, b"a"), (340, b"a"), (341, b"d"), ahead) == (10, 5, 2, 2, 3)
    assert run() == (10, 5, 2, 2, 3)
    assert kafka.ends(f"{topic}-once") == Counter({0: 10})


def test_the_result_matches_that_of_a_simple_loop() -> None:
    """Records with random times in batches of any size, combined with remembered ids."""
    chance = random.Random(7)
    for _ in range(200):
        rows: list[tuple[bytes, int, str | None]] = []
        for identity in (b"a", b"b", b"c"):
            known = sorted(chance.sample(range(0, 60, 12), chance.randrange(3)))
            rows += [(identity, at, None) for at in known]
            rows += [(identity, at, "t") for at in sorted(chance.choices(range(60), k=chance.randrange(8)))]
        kept: list[tuple[bytes, int]] = []
        everything: list[tuple[bytes, int]] = [(i, at) for i, at, topic in rows if topic is None]
        for identity, at, topic in rows:
            if topic and all(i != identity or abs(at - t) > 10 for i, t in everything):
                kept.append((identity, at))
                everything.append((identity, at))
        table = pa.Table.from_pylist(
            [dict(zip(("id", "at_ms", "topic"), row, strict=True)) for row in rows],
            pa.schema([("id", pa.binary()), ("at_ms", pa.int64()), ("topic", pa.string())]),
        )
        found = without_repeats(iter(table.to_batches(max_chunksize=chance.randrange(1, 9))), 10)
        assert [(r["id"], r["at_ms"]) for batch in found for r in batch.to_pylist()] == kept


def test_ids_are_derived_from_key_and_value_or_an_expression(spark: Any) -> None:
    """An id derived from key and value distinguishes pairs whose concatenations are equal."""
    pairs = [("ab", "c"), ("a", "bc"), (None, "abc"), ("abc", None), ("", "abc"), ("abc", "")]
    frame = spark.createDataFrame(pairs, "key string, value string").selectExpr(
        "CAST(key AS BINARY) key", "CAST(value AS BINARY) value"
    )
    assert frame.selectExpr(f"{id_expression(None)} id").distinct().count() == len(pairs)
    json = frame.selectExpr(f"{id_expression('length(value) + 1')} id").where("id = '2'")
    assert json.count() == 1
