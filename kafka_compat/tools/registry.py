"""The table of commands, and functions that run a command as `kafka-compat topics …` or under Kafka's names
(`kafka-topics`, `kafka-topics.sh`).
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

TOOLS: Final = {
    "acls": "kafka_compat.tools.acls",
    "broker-api-versions": "kafka_compat.tools.broker_api_versions",
    "cluster": "kafka_compat.tools.cluster",
    "client-metrics": "kafka_compat.tools.client_metrics",
    "configs": "kafka_compat.tools.configs",
    "console-consumer": "kafka_compat.tools.console_consumer",
    "console-producer": "kafka_compat.tools.console_producer",
    "console-share-consumer": "kafka_compat.tools.console_share_consumer",
    "consumer-groups": "kafka_compat.tools.consumer_groups",
    "consumer-perf-test": "kafka_compat.tools.consumer_perf_test",
    "delegation-tokens": "kafka_compat.tools.delegation_tokens",
    "delete-records": "kafka_compat.tools.delete_records",
    "dump-log": "kafka_compat.tools.dump_log",
    "features": "kafka_compat.tools.features",
    "get-offsets": "kafka_compat.tools.get_offsets",
    "groups": "kafka_compat.tools.groups",
    "leader-election": "kafka_compat.tools.leader_election",
    "log-dirs": "kafka_compat.tools.log_dirs",
    "metadata-quorum": "kafka_compat.tools.metadata_quorum",
    "producer-perf-test": "kafka_compat.tools.producer_perf_test",
    "reassign-partitions": "kafka_compat.tools.reassign_partitions",
    "share-groups": "kafka_compat.tools.share_groups",
    "storage": "kafka_compat.tools.storage",
    "topics": "kafka_compat.tools.topics",
    "transactions": "kafka_compat.tools.transactions",
}
"""Maps a command's name without "kafka-" to its module. The module's `run(arguments)` returns the exit code,
or raises Failure or SystemExit.
"""

_INTERRUPTED: Final = 130


def tool_named(program: str) -> str | None:
    """Return the command for a program like `/opt/kafka/bin/kafka-topics.sh`, or None if there is none."""
    name = os.path.basename(program)
    return tool_of(name) if name.startswith("kafka-") else None


def tool_of(word: str) -> str | None:
    """Return the command with this name, with or without "kafka-" and ".sh", or None if there is none."""
    tool = word.removesuffix(".sh").removeprefix("kafka-")
    return tool if tool in TOOLS else None


def run(tool: str, arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    from kafka_compat.tools.failure import Failure

    try:
        code = int(importlib.import_module(TOOLS[tool]).run(list(arguments)))
        sys.stdout.flush()
    except Failure as failure:
        print(f'Exception in thread "main" {failure.trace}', end="", file=sys.stderr)
        code = 1
    except SystemExit as end:
        code = int(end.code or 0)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    return code


def main(tool: str) -> None:
    """Run a command as the main program."""
    from kafka_compat.tools.output import guarded

    leave(guarded(lambda: run(tool, sys.argv[1:])))


def leave(code: int) -> NoReturn:
    """Exit this process without the interpreter's slow cleanup."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        pass
    os._exit(code)
