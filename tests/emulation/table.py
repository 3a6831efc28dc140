"""The APIs and features of Kafka versions, read from Kafka's jars.

`python -m tests.emulation.table` writes them to kafka_compat/protocol/kafka_versions.py. Maven downloads the
jars into the cache directory.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafka_compat.protocol import kafka_versions
from tests.support import kafka_jars

RELEASES = (
    *("0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3"),
    *("1.0.2", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.1", "4.1.0", "4.2.0", "4.3.1", "4.4.0"),
)
"""The last release of each version, as far as it was available."""

_TABLE = Path(kafka_versions.__file__)
_ONLY_WITH_REPORTER = {71, 72}
"""The APIs of client telemetry, which brokers report only if they have a reporter for the metrics."""
_LOGGING = ("org.slf4j", "slf4j-api", "1.7.36")


class Row(NamedTuple):
    """What a broker of one version reports: APIs by their key, and features, each with its lowest and highest
    version.
    """

    apis: dict[int, tuple[int, int]]
    features: dict[str, tuple[int, int]]


def version_of(release: str) -> str:
    """Return a release without its last number, as users write it."""
    return release.rpartition(".")[0]


def read(release: str) -> Row:
    """Return what a broker of this release reports, according to its jars."""
    jars = [_jar("org.apache.kafka", "kafka-clients", release), _jar(*_LOGGING)]
    if int(release.partition(".")[0]) >= 4:
        jars.append(_jar("org.apache.kafka", "kafka-server-common", release))
    quick = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")
    command = ["java", *quick, "-cp", ":".join(map(str, [*jars, _compiled()])), "ApiTable"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = Row({}, {})
    for line in printed.splitlines():
        kind, name, low, high = line.split()
        if kind == "feature":
            row.features[name] = int(low), int(high)
        elif int(name) not in _ONLY_WITH_REPORTER:
            row.apis[int(name)] = int(low), int(high)
    return row


@functools.cache
def _compiled() -> Path:
    source = Path(__file__).with_name("ApiTable.java")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = kafka_jars.cache_directory() / "api-versions" / digest
    if not folder.is_dir():
        subprocess.run(["javac", "-d", str(folder), str(source)], check=True, capture_output=True)
    return folder


def _jar(group: str, artifact: str, version: str) -> Path:
    folder = kafka_jars.cache_directory() / "api-versions"
    jar = folder / f"{artifact}-{version}.jar"
    if not jar.is_file():
        command = ["mvn", "--quiet", "--batch-mode", "dependency:copy", "-Dmdep.overWriteReleases=false"]
        command += [f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={folder}"]
        subprocess.run(command, check=True, capture_output=True)
    return jar


def _lines(release: str) -> Iterator[str]:
    row = read(release)
    yield f'    "{version_of(release)}": (\n'
    words = [f"{key}:{low}-{high}" for key, (low, high) in row.apis.items()]
    for start in range(0, len(words), 12):
        yield f'        "{" ".join(words[start : start + 12])} "\n'
    for name, (low, high) in row.features.items():
        yield f'        "{name}:{low}-{high} "\n'
    yield "    ),\n"


def main() -> None:
    """Write the table."""
    text = _TABLE.read_text()
    head = text[: text.index("\n" + kafka_versions.FIRST_LINE) + 1 + len(kafka_versions.FIRST_LINE)]
    rows = "".join(line for release in RELEASES for line in _lines(release))
    _TABLE.write_text(f"{head}\n{rows}}}\n")


if __name__ == "__main__":
    main()
