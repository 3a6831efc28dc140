"""Modules that a broker has imported after its first response: only those that it needs for this response."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.compiled import COMPILED
from tests.support.servers import PROJECT

_LATER = (
    "dataclasses",
    "kafka_compat.groups",
    "kafka_compat.transactions",
    "kafka_compat.kept_modules",
    "kafka_compat.cli.ephemeral",
    "kafka_compat.metadata.config_manager",
    "kafka_compat.network.refusals",
    "kafka_compat.config.environment",
    "kafka_compat.config.synonyms",
    "kafka_compat.protocol.zero_uuid",
    "kafka_compat.replication.fetch_session",
    "kafka_compat.replication.in_sync",
    "kafka_compat.replication.partition",
    "kafka_compat.security.broker_security",
    "kafka_compat.storage.config",
    "kafka_compat.storage.log.loader",
    "kafka_compat.storage.log.log",
    "kafka_compat.storage.records.batch",
    "kafka_compat.storage.segments.segment",
    "random",
    "shlex",
    "tempfile",
)
"""Modules for partitions, topic IDs, groups, changes of settings and single options, imported when used."""

_LATER_IF_COMPILED = ("kafka_compat.protocol.compiler", "platform", "uuid")
"""Modules for messages without native codecs, and those that they import."""

_PROGRAM = """
import asyncio, gc, json, struct, sys
from kafka_compat import cli
from kafka_compat.cli import foreground

collected = []
gc.callbacks.append(lambda phase, info: phase == "stop" and collected.append(info["generation"]))
ready = foreground.tell_ready

async def request_versions(address):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(struct.pack(">ihhih", 10, 18, 0, 1, -1))
    await reader.readexactly(4)
    print(json.dumps({"modules": sorted(sys.modules), "collected": collected}), flush=True)
    writer.close()

def tell_ready(brokers, *arguments, **options):
    tell_ready.request = asyncio.ensure_future(request_versions(brokers[0].addresses["PLAINTEXT"]))
    ready(brokers, *arguments, **options)

foreground.tell_ready = tell_ready
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_new_broker_imports_only_the_modules_for_its_first_response(tmp_path: Path) -> None:
    program = f"import sys; sys.path[:0] = {[*sys.path, str(PROJECT)]!r}\n{_PROGRAM}"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program, "serve", "--port=0", f"--override=log.dirs={tmp_path}"],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        found = json.loads(next(line for line in process.stdout if line.startswith(b"{")))
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0
    loaded = set(found["modules"])
    assert "kafka_compat.broker.broker" in loaded
    later = (*_LATER, *_LATER_IF_COMPILED) if COMPILED else _LATER
    assert [name for name in later if name in loaded] == []
    assert 1 not in found["collected"], (
        "modules were examined by the garbage collector while they were imported"
    )
