"""Modules that a broker has imported when it sends its first response: those that it needs for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.servers import PROJECT

_LATER = (
    "kafka_compat.groups",
    "kafka_compat.transactions",
    "kafka_compat.kept_modules",
    "kafka_compat.cli.ephemeral",
    "kafka_compat.metadata.config_manager",
    "kafka_compat.config.synonyms",
    "kafka_compat.replication.fetch_session",
    "kafka_compat.replication.in_sync",
    "kafka_compat.replication.partition",
    "kafka_compat.security.broker_security",
    "kafka_compat.storage.log.loader",
    "kafka_compat.storage.log.log",
    "kafka_compat.storage.records.records",
    "kafka_compat.storage.records.validation",
    "random",
    "shlex",
    "tempfile",
)
"""Modules for partitions, groups, changes of settings and single options, which are imported on first use."""

_PROGRAM = """
import gc, json, sys
from kafka_compat import cli
from kafka_compat.cli import foreground

collected = []
gc.callbacks.append(lambda phase, info: phase == "stop" and collected.append(info["generation"]))
ready = foreground.tell_ready

def tell_ready(*arguments, **options):
    print(json.dumps({"modules": sorted(sys.modules), "collected": collected}), flush=True)
    ready(*arguments, **options)

foreground.tell_ready = tell_ready
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_new_broker_imports_no_module_for_partitions_before_its_first_response(tmp_path: Path) -> None:
    program = f"import sys; sys.path[:0] = {[*sys.path, str(PROJECT)]!r}\n{_PROGRAM}"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program, "serve", "--port=0", f"--override=log.dirs={tmp_path}"],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0
    loaded = set(found["modules"])
    assert "kafka_compat.broker.broker" in loaded
    assert [name for name in _LATER if name in loaded] == []
    assert 1 not in found["collected"], (
        "modules were examined by the garbage collector while they were imported"
    )
