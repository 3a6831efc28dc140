"""Apache Kafka in KRaft mode with a receiver of client metrics, without which it does not serve telemetry."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import kafka_jars
from tests.support.process import Process
from tests.support.servers import GenuineKafka

_SOURCE = Path(__file__).with_name("Receiver.java")


class ReceivingKafka(GenuineKafka):
    """A broker whose receiver accepts only valid OTLP."""

    def __init__(self, directory: Path, version: str) -> None:
        super().__init__(directory, {"metric.reporters": "Receiver"}, version=version, mode="kraft")
        self._classes = directory / "classes"

    def prepare(self) -> None:
        jars = kafka_jars.class_path(self.version)
        subprocess.run(
            ["javac", "-nowarn", "-Xlint:-removal", "-cp", jars, "-d", str(self._classes), str(_SOURCE)],
            check=True,
        )
        super().prepare()

    def _new_process(self) -> Process:
        process = super()._new_process()
        jars = kafka_jars.class_path(self.version)
        line = [f"{self._classes}:{word}" if word == jars else word for word in process.command]
        return Process(line, self.log, r"Kafka Server started|\[KafkaServer id=\d+\] started")
