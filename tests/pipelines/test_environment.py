"""The environment of the jobs, without Spark: machine checks, options, cluster state and progress
messages.
"""

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_compat.cli import main
from kafka_compat.pipelines import environment, spark_output
from kafka_compat.pipelines.checkpoint import batch_range, next_offsets
from kafka_compat.pipelines.cluster import ClusterView, lost_since
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.kafka_options import client_properties, source_options
from kafka_compat.pipelines.progress import Progress, text_table
from kafka_compat.pipelines.session import remove_empty
from kafka_compat.pipelines.spark_releases import release_of
from tests.support.servers import PROJECT

ARCHIVE = ["pipeline", "archive", "--bootstrap-server", "127.0.0.1:1", "--topic", "t"]


def test_a_missing_java_runtime_is_reported_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main([*ARCHIVE, "--to", str(tmp_path / "archive")]) == 2
    message = capsys.readouterr().err
    assert "java is not on the PATH" in message
    assert "apt install openjdk-17-jre-headless" in message
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize("version", ["11.0.2", "25.0.1"])
def test_a_java_runtime_that_spark_does_not_run_on_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    release = release_of("4.0.0")
    monkeypatch.setattr(environment, "spark_release", lambda: release)
    with pytest.raises(NotStarted, match=rf"pyspark 4\.0\.0 runs on Java 17 to \d+; .*{version}") as error:
        environment.java_command()
    assert "Install Java 17 or 21" in error.value.hint
    assert ("pip install 'pyspark==4.2.*'" in error.value.hint) == (version == "25.0.1")


def pyspark_of(version: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an installation of pyspark in `folder` hide the real one."""
    (folder / "pyspark").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    (folder / "pyspark" / "version.py").write_text(f'__version__: str = "{version}"\n')
    monkeypatch.syspath_prepend(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("version", ["3.5.1", "4.3.0"])
def test_an_unsupported_version_of_pyspark_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    pyspark_of(version, tmp_path / "site", monkeypatch)
    assert main([*ARCHIVE, "--to", str(tmp_path / "archive")]) == 2
    message = capsys.readouterr().err
    assert f"pyspark {version} is installed; the jobs need pyspark 4.0, 4.1 or 4.2." in message
    assert "pip install 'kafka-compat[spark]'" in message


def test_a_spark_home_of_another_version_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pyspark_of("4.0.0", tmp_path / "site", monkeypatch)
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    with pytest.raises(NotStarted, match=r"is Spark 3\.5\.1 \(Scala 2\.12\), but pyspark 4\.0\.0") as error:
        environment.require_spark()
    assert error.value.hint == "Unset SPARK_HOME."
    (jars / "spark-core_2.12-3.5.1.jar").rename(jars / "spark-core_2.13-4.2.0.jar")
    with pytest.raises(NotStarted, match=r"is Spark 4\.2\.0, but pyspark 4\.0\.0") as error:
        environment.require_spark()
    assert "pip install pyspark==4.2.0" in error.value.hint
    (jars / "spark-core_2.13-4.2.0.jar").rename(jars / "spark-core_2.13-4.0.0.jar")
    environment.require_spark()


def test_a_connector_of_another_version_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The job says which connector is there, and which one to install, before Spark starts."""
    pyspark_of("4.2.0", tmp_path / "site", monkeypatch)
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in (release_of("4.0.0") or pytest.fail()).jars():
        (jars / name).touch()
    with pytest.raises(NotStarted, match=r"connector of Spark 4\.0\.0, but pyspark 4\.2\.0 is") as error:
        environment.jars_in(jars)
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0" in error.value.hint
    assert "kafka-compat spark jars" in error.value.hint
    for name in (release_of("4.2.0") or pytest.fail()).jars():
        (jars / name).touch()
    assert len(environment.jars_in(jars)) == 4


def test_an_iceberg_archive_without_a_package_for_this_spark_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyspark_of("4.2.0", tmp_path / "site", monkeypatch)
    assert main([*ARCHIVE, "--to", str(tmp_path / "archive"), "--format", "iceberg"]) == 2
    message = capsys.readouterr().err
    assert "Iceberg has no package for Spark 4.2.0" in message
    assert "pip install 'pyspark==4.1.1', or choose --format delta" in message
    assert not (tmp_path / "archive").exists()


def test_a_delta_archive_without_deltalake_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "deltalake" else find_spec(name)
    )
    assert main([*ARCHIVE, "--to", str(tmp_path / "archive"), "--format", "delta"]) == 2
    assert "pip install 'kafka-compat[delta]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: '
            "org.apache.spark#spark-sql-kafka-0-10_2.13;4.0.0: not found]",
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0: not found.",
        ),
        (
            "Error: Could not create the Java Virtual Machine.",
            "Error: Could not create the Java Virtual Machine.",
        ),
        ("WARNING: nothing of note", "[JAVA_GATEWAY_EXITED]"),
    ],
)
def test_a_failure_to_start_spark_is_reported(tmp_path: Path, says: str, told: str) -> None:
    """The message contains the JVM's own reason and the path of its complete output."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.2"\' >&2 && exit\n'
        f"cat >&2 <<'END'\nWARNING: Using incubator modules\n{says}\nEND\nexit 1\n"
    )
    java.chmod(0o755)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "meta.properties").write_text("version=0\n")
    command = [
        sys.executable,
        "-m",
        "kafka_compat",
        "pipeline",
        "report",
        "--log-dir",
        str(tmp_path / "logs"),
    ]
    own = {"JAVA_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=PROJECT,
        env={**os.environ, **own},
    )
    assert (done.returncode, done.stdout) == (2, "")
    began, first, *_, last = done.stderr.splitlines()
    assert began == f"report: starting Spark {environment.spark_release().version}"
    assert first.startswith(f"kafka-compat pipeline report: Spark did not start: {told}")
    assert "Using incubator modules" not in done.stderr
    kept = Path(last.removeprefix("Spark's own messages: "))
    assert kept.parent == tmp_path and says in kept.read_text()


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "pandas"])
def test_a_missing_python_package_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], package: str
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    assert main([*ARCHIVE, "--to", str(tmp_path / "archive")]) == 2
    message = capsys.readouterr().err
    assert f"{package} is not installed" in message
    assert "pip install 'kafka-compat[spark]'" in message


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", False),
        ("11:46:54 ERROR Executor: Exception in task 0.0 in stage 1.0 (TID 1)", True),
        ("java.lang.OutOfMemoryError: Java heap space", True),
    ],
)
def test_sparks_output_is_kept_if_it_contains_unknown_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, is_kept: bool
) -> None:
    file = tmp_path / "spark.log"
    file.write_text(f"{line}\n")
    monkeypatch.setattr(spark_output, "_file", file)
    assert spark_output.kept() == (f"\nSpark's own messages: {file}" if is_kept else "")


def test_empty_directories_left_by_spark_are_removed(tmp_path: Path) -> None:
    for name in ("empty/spark-1", "used/spark-2"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "used" / "spark-2" / "file").touch()
    for name in ("empty", "used", "absent"):
        remove_empty(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_spark_jars_copies_four_jars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, names = tmp_path / "jars", list(environment.spark_release().jars())
    assert main(["spark", "jars", str(target)]) == 0
    assert sorted(path.name for path in target.iterdir()) == sorted(names)
    assert capsys.readouterr().out.splitlines() == [str(target / name) for name in names]
    assert main(["spark", "jars", str(target)]) == 0
    assert "Already there" in capsys.readouterr().err


def test_spark_jars_reports_missing_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "_fetch_with_maven", lambda scratch, jars: "mvn is not installed")
    monkeypatch.setattr(environment, "_fetch_with_ivy", lambda scratch, jars: "UnknownHostException")
    line = ["spark", "jars", str(tmp_path), "--format", "iceberg", "--spark-version", "4.1.1"]
    assert main(line) == 2
    message = capsys.readouterr().err
    assert "Maven: mvn is not installed" in message
    assert "Ivy: UnknownHostException" in message
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1" in message
    assert "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13" in message


def test_jars_missing_from_the_directory_are_reported(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match="lacks spark-sql-kafka") as error:
        environment.jars_in(tmp_path)
    assert f"kafka-compat spark jars {tmp_path}" in error.value.hint


def test_options_are_split_into_source_and_client_settings() -> None:
    options = source_options(
        ["minpartitions=8", "security.protocol=SSL", "kafka.ssl.x=a=b", "startingOffsets=latest"]
    )
    assert options == {
        "minPartitions": "8",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.x": "a=b",
        "startingOffsets": "latest",
    }
    assert client_properties(options) == {"security.protocol": "SSL", "ssl.x": "a=b"}


def test_offset_ranges_are_read_from_the_checkpoint(tmp_path: Path) -> None:
    offsets, source = tmp_path / "offsets", tmp_path / "sources" / "0"
    offsets.mkdir()
    source.mkdir(parents=True)
    assert next_offsets(tmp_path) == {}
    (source / "0").write_bytes(b"\0v1\n" + json.dumps({"t": {"0": 5}}).encode())
    for batch_id, ends in enumerate(({"t": {"0": 9}}, {"t": {"0": 12, "1": 3}})):
        (offsets / str(batch_id)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(ends)}')
    (offsets / ".1.crc").write_bytes(b"crc")
    assert batch_range(tmp_path, 0) == ({"t": {0: 5}}, {"t": {0: 9}})
    assert batch_range(tmp_path, 1) == ({"t": {0: 9}}, {"t": {0: 12, 1: 3}})
    assert next_offsets(tmp_path) == {"t": {0: 12, 1: 3}}


def test_offsets_lost_since_the_checkpoint_are_reported() -> None:
    view = ClusterView(
        {"kept": "id1", "anew": "id9", "cut": "id3"},
        earliest={"kept": {0: 5}, "anew": {0: 0}, "cut": {0: 0}},
        latest={"kept": {0: 9}, "anew": {0: 50}, "cut": {0: 3}},
    )
    ids = {"kept": "id1", "anew": "id2", "cut": "id3"}
    assert lost_since(view, {"kept": {0: 5}}, ids) == []
    assert lost_since(view, {"kept": {0: 9}}, {}) == []
    assert lost_since(view, {"gone": {0: 4}}, ids) == []
    assert lost_since(view, {"kept": {0: 3}}, ids) == ["kept-0: offsets 3 to 4 were deleted, not archived."]
    assert "deleted and recreated" in lost_since(view, {"anew": {0: 10}}, ids)[0]
    assert "ends at offset 3, but was archived up to 4" in lost_since(view, {"cut": {0: 4}}, ids)[0]


def test_progress_is_printed_as_lines() -> None:
    out = io.StringIO()
    with Progress("archive", 3000, out) as progress:
        progress.batch(0, 1000, 2000)
        progress.batch(1, 1990, 0)
    first, second, third = out.getvalue().splitlines()
    assert first == "archive: 3,000 offsets to read"
    assert second.startswith("archive: batch 0: 1,000 rows, ")
    assert third.endswith(" rows/s, 0 offsets behind")
    assert (progress.rows, progress.batches) == (2990, 2)


def test_progress_is_redrawn_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with Progress("archive", 1000, out) as progress:
        progress.batch(0, 1000, 0)
    assert "1,000 rows" in out.getvalue()
    assert "0 offsets behind" in out.getvalue()
    assert "batch 0" not in out.getvalue()


def test_numbers_in_tables_are_right_aligned() -> None:
    table = text_table(["TOPIC", "ROWS"], [["a", "7"], ["longer", "1234"], ["c", "-"]])
    assert table.splitlines() == ["TOPIC   ROWS", "a          7", "longer  1234", "c          -"]
