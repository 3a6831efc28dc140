"""The benchmark's calculations, and a short end-to-end run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.bench.report import Leg, Pairs, as_json, cell, table
from tests.bench.workloads import Measurement
from tests.support import campaign
from tests.support.servers import PROJECT


def test_a_ratio_is_calculated_within_each_pair_of_runs() -> None:
    pairs = Pairs()
    for ours, genuine in ((200.0, 100.0), (90.0, 30.0), (10.0, 10.0)):
        pairs.add({"throughput": ours}, {"throughput": genuine})
    assert pairs.ratios("throughput") == [2.0, 3.0, 1.0]
    assert cell(pairs.ratios("throughput")) == "2.00 (1.00–3.00)"


def test_a_latency_of_zero_milliseconds_has_no_ratio() -> None:
    pairs = Pairs()
    pairs.add({"p50_ms": 1.0}, {"p50_ms": 0.0})
    assert cell(pairs.ratios("p50_ms")) == "–"
    assert as_json({"java": pairs}) == {"java": {}}


def test_broker_cpu_time_is_reported_per_million_records() -> None:
    figures = Leg(Measurement(records=500_000, throughput=100_000), 1.5, user_cpu_seconds=1.0).figures()
    assert figures == {
        "throughput": 100_000,
        "cpu_seconds_per_million": 3.0,
        "user_cpu_seconds_per_million": 2.0,
    }


def test_a_table_has_one_row_per_workload_and_contains_only_ratios() -> None:
    pairs = Pairs()
    pairs.add({"throughput": 123456.0}, {"throughput": 61728.0})
    text = table({"java-produce-100": pairs, "other": Pairs()}, {"throughput": "throughput"}, "Workloads")
    assert "java-produce-100  2.00 (2.00–2.00)" in text
    assert "other" not in text
    assert "123456" not in text


@pytest.mark.timeout(300)
def test_the_speed_of_administration_is_compared() -> None:
    """Here with the same broker in Apache Kafka's place, which starts faster."""
    command = [sys.executable, "-m", "tests.bench.administration", "--json", "--before", str(PROJECT)]
    command += ["--partitions", "100", "--pairs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=PROJECT)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)
    assert {"first-group", "first-transaction", "create-many-topics", "delete-many-topics"} <= results.keys()
    assert len(results["create-one-topic"]["seconds"]["pairs"]) == 1


@pytest.mark.timeout(600)
@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
@pytest.mark.parametrize(
    ("module", "arguments", "expected"),
    [
        ("quorum_start", [], {"three nodes"}),
        ("quorum_kills", ["--kills", "1", "--clients", "confluent"], {"producers", "metadata"}),
        ("quorum_kills", ["--kills", "1", "--separate"], {"metadata"}),
        (
            "quorum_growth",
            ["--partitions", "100", "--replicated", "6", "--brokers", "4"],
            {"failover", "voter"},
        ),
    ],
)
def test_clusters_with_a_quorum_are_compared(module: str, arguments: list[str], expected: set[str]) -> None:
    """With the same broker in Apache Kafka's place."""
    command = [sys.executable, "-m", f"tests.bench.{module}", "--json", "--before", str(PROJECT)]
    command += ["--pairs", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, cwd=PROJECT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout).keys() == expected


@pytest.mark.timeout(600)
@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
def test_a_quick_run_prints_ratios() -> None:
    command = [str(PROJECT / "scripts" / "bench"), "--quick", "--json", "--only", "confluent-produce-100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)["records validated"]
    assert {"throughput", "p50_ms", "p99_ms", "cpu_seconds_per_million"} <= results[
        "confluent-produce-100"
    ].keys()
    assert len(results["confluent-produce-100"]["throughput"]["pairs"]) == 2
    assert "[1/" in done.stderr
