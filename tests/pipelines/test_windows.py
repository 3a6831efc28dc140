"""kafka-compat pipeline windows: every input record is either in a window or among the dead letters."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 8_000
DAY_MS = 86_400_000
EVERY = 50
SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, "
    "dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour STRING"
)
CARRIER, DISTANCE = 9, 15


def with_broken_lines() -> Iterator[Any]:
    """Yield every flight; every EVERY-th line is truncated."""
    for i, (key, value, when, headers) in enumerate(flights(SAMPLE)):
        yield key, value[:20] if i % EVERY == 0 else value, when, headers


def table_in(kafka: Cluster, topic: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Map (window start, carrier) to its last result in the log."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for partition, end in kafka.ends(topic).items():
        for message in kafka.read(topic, partition, end):
            value = json.loads(message.value())
            key = json.loads(message.key())
            assert {name: value[name] for name in key} == key
            found[key["window_start"], key["carrier"]] = value
    return found


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_windows_are_correct_after_a_kill_and_a_rerun(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the broker, the last results equal those of a plain loop, and no record is
    lost.
    """
    topic, results, dead = (kafka.create_topic(partitions=PARTITIONS) for _ in range(3))
    kafka.fill(topic, PARTITIONS, with_broken_lines())
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", results]
    arguments += ["--dead-letter-topic", dead, "--schema", SCHEMA, "--format", "csv", "--null", "NA"]
    arguments += [
        "--window",
        "1d",
        "--lateness",
        "400d",
        "--group-by",
        "carrier",
        "--sum",
        "distance",
        "--max",
        "distance",
    ]
    arguments += ["--to", str(tmp_path / "windows"), "--jars", str(connector_jars)]
    arguments += ["--master", "local[2]", "--offsets-per-batch", str(batch_of(SAMPLE))]
    report = kill_and_finish("windows", arguments, kafka.server)
    expected: dict[tuple[int, str], list[int]] = defaultdict(list)
    for i, (_, value, when, _) in enumerate(flights(SAMPLE)):
        row = next(csv.reader([value.decode()]))
        if i % EVERY:
            expected[when - when % DAY_MS, row[CARRIER]].append(int(row[DISTANCE]))
    found = table_in(kafka, results)
    assert {
        key: (value["rows"], value["sum_distance"], value["max_distance"]) for key, value in found.items()
    } == {(day(start), carrier): (len(d), sum(d), max(d)) for (start, carrier), d in expected.items()}
    letters = [m for p, end in kafka.ends(dead).items() for m in kafka.read(dead, p, end)]
    assert {dict(letter.headers())["kafka-compat-reason"] for letter in letters} == {b"not csv of the schema"}
    assert sum(value["rows"] for value in found.values()) + len(letters) == SAMPLE
    counts = [report[name] for name in ("read_total", "dead_letters")]
    assert counts == [SAMPLE, len(letters)] == [SAMPLE, (SAMPLE + EVERY - 1) // EVERY]
    assert report["closed_rows"] + report["open_rows"] == SAMPLE - len(letters)


def day(start_ms: int) -> str:
    """Format a time as the results do."""
    return datetime.fromtimestamp(start_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_late_and_invalid_rows_are_set_aside_across_several_runs(
    kafka: Cluster, connector_jars: Path, spark: Any, tmp_path: Path
) -> None:
    """JSON values with their own timestamps. Each dead letter has the reason in a header, and the unchanged
    record.
    """
    topic = kafka.create_topic(partitions=2)
    results, dead = f"{topic}-results", f"{topic}-dead"
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", results]
    arguments += ["--dead-letter-topic", dead, "--create", "--schema", "carrier STRING, at STRING, km DOUBLE"]
    arguments += ["--time", "at", "--window", "10m", "--lateness", "10m", "--group-by", "carrier"]
    arguments += ["--sum", "km", "--min", "km", "--check", "km > 0", "--jars", str(connector_jars)]
    arguments += ["--to", str(tmp_path / "windows")]

    def run(*values: bytes | None) -> tuple[int, ...]:
        kafka.fill(topic, 2, [(b"k", value, 1_700_000_000_000, [("h", b"1")]) for value in values])
        report = run_here("windows", *arguments)
        names = ("read_total", "closed_rows", "open_rows", "open_windows", "dead_letters")
        return tuple(report[name] for name in names)

    def row(minute: int, km: Any = 1.5, carrier: str | None = "AA", year: int = 2013) -> bytes:
        at = f"{year}-01-01T10:{minute:02}:00Z"
        return json.dumps({"carrier": carrier, "at": at, "km": km}).encode()

    bad = [b"no json", None, row(1, "far"), row(1, -2), b'{"km": 1, "at": "soon"}', b'{"km": 1}']
    assert run(row(0), row(9), row(9, 2, None), row(10), *bad) == (10, 0, 4, 3, 6)
    # The latest time is 10:10, so no window is closed before 10:20. Then only both windows of 10:00 are
    # closed. A row far in the future gets its own window, and does not make other rows late.
    assert run(row(3), row(20), row(0, year=9000)) == (13, 4, 3, 3, 6)
    assert run(row(3), row(19)) == (15, 4, 4, 3, 7)
    found = table_in(kafka, results)
    assert found.pop(("9000-01-01T10:00:00.000Z", "AA"))["rows"] == 1
    assert {(key[0][11:16], key[1]): (v["rows"], v["sum_km"], v["min_km"]) for key, v in found.items()} == {
        ("10:00", "AA"): (3, 4.5, 1.5),
        ("10:00", None): (1, 2.0, 2.0),
        ("10:10", "AA"): (2, 3.0, 1.5),
        ("10:20", "AA"): (1, 1.5, 1.5),
    }
    letters = [m for p, end in kafka.ends(dead).items() for m in kafka.read(dead, p, end)]
    reasons = {(letter.value(), dict(letter.headers())["kafka-compat-reason"].decode()) for letter in letters}
    told = ["not json of the schema", "no value", "km: not double", "not so: km > 0"]
    told += ["at: no time", "at: no time"]
    assert reasons == {*zip(bad, told, strict=True), (row(3), "late: its window is closed")}
    first = letters[0]
    assert (first.key(), first.headers()[0]) == (b"k", ("h", b"1"))
    assert first.timestamp()[1] == 1_700_000_000_000
    assert Counter(kafka.ends(dead)).total() == 7


def test_a_job_that_cannot_start_reports_the_reason(kafka: Cluster, tmp_path: Path, capsys: Any) -> None:
    topic = kafka.create_topic()
    arguments = ["pipeline", "windows", "--bootstrap-server", kafka.address, "--topic", topic]
    arguments += ["--to", str(tmp_path / "windows"), "--schema", "a INT", "--window", "1h"]
    assert main([*arguments, "--to-topic", "x", "--dead-letter-topic", "x"]) == 2
    assert "two topics" in capsys.readouterr().err
    assert main([*arguments, "--to-topic", "x", "--dead-letter-topic", topic]) == 2
    assert "both read and written" in capsys.readouterr().err
