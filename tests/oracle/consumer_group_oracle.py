"""Target assignments, metadata hashes and hash tables of Kafka's own classes (ConsumerGroupOracle.java)."""

from __future__ import annotations

import json
from typing import Any

from tests.oracle.jvm import OracleJvm
from tests.support.kafka_jars import NEWEST_VERSION


class ConsumerGroupOracle(OracleJvm):
    """The group coordinator's classes of the newest Kafka. Use it as a context manager, which ends the
    JVM.
    """

    def __init__(self) -> None:
        super().__init__("ConsumerGroupOracle", NEWEST_VERSION)

    def ask(self, **question: Any) -> Any:
        """Return the answer to a question, which its `kind` names in the Java program."""
        self.say(json.dumps(question).encode() + b"\n")
        return json.loads(self.read_sized())
