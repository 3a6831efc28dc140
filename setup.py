"""What setup.cfg cannot say: which modules become C extensions, where KAFKA_COMPAT_COMPILE=1 asks for it.

`scripts/compile` and `scripts/build-wheel` do. Everything else installs the Python sources, which behave the
same, and so does a build that finds no compiler. What is in the list: docs/design/decisions/0009-compiled.md.
"""

import atexit
import os
import sys
from configparser import ConfigParser
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MYPYC = "mypy == 2.4.1"
"""Exactly: what it makes of the sources depends on it."""

COMPILED = (
    "kafka_compat/api/api.py",
    "kafka_compat/api/caller.py",
    "kafka_compat/api/calls.py",
    "kafka_compat/api/error_codes.py",
    "kafka_compat/api/handler.py",
    "kafka_compat/api/request_counts.py",
    "kafka_compat/api/stages.py",
    "kafka_compat/clock.py",
    "kafka_compat/cluster/broker_client.py",
    "kafka_compat/coordinator_runtime/partition_log.py",
    "kafka_compat/coordinator_runtime/runtime.py",
    "kafka_compat/coordinator_runtime/scheduler.py",
    "kafka_compat/coordinator_runtime/timers.py",
    "kafka_compat/deferred.py",
    "kafka_compat/error_mapping.py",
    "kafka_compat/handlers/add_partitions_to_txn.py",
    "kafka_compat/handlers/api_versions.py",
    "kafka_compat/handlers/end_txn.py",
    "kafka_compat/handlers/fetch.py",
    "kafka_compat/handlers/list_offsets.py",
    "kafka_compat/handlers/metadata.py",
    "kafka_compat/handlers/produce.py",
    "kafka_compat/handlers/produce_refusals.py",
    "kafka_compat/long_work.py",
    "kafka_compat/metadata/cache.py",
    "kafka_compat/metadata/described.py",
    "kafka_compat/metadata/topic_names.py",
    "kafka_compat/network/budget.py",
    "kafka_compat/network/connection.py",
    "kafka_compat/network/dispatch.py",
    "kafka_compat/network/framing.py",
    "kafka_compat/network/output.py",
    "kafka_compat/network/server.py",
    "kafka_compat/network/turns.py",
    "kafka_compat/protocol/buffers.py",
    "kafka_compat/protocol/codec.py",
    "kafka_compat/protocol/headers.py",
    "kafka_compat/protocol/versions.py",
    "kafka_compat/replication/counts.py",
    "kafka_compat/replication/delayed_fetch.py",
    "kafka_compat/replication/delayed_produce.py",
    "kafka_compat/replication/delayed_read.py",
    "kafka_compat/replication/fetch_context.py",
    "kafka_compat/replication/fetch_reader.py",
    "kafka_compat/replication/fetch_response.py",
    "kafka_compat/replication/fetch_session.py",
    "kafka_compat/replication/flusher.py",
    "kafka_compat/replication/follower.py",
    "kafka_compat/replication/follower_requests.py",
    "kafka_compat/replication/follower_session.py",
    "kafka_compat/replication/in_sync.py",
    "kafka_compat/replication/partition.py",
    "kafka_compat/replication/replica_fetcher.py",
    "kafka_compat/replication/replica_manager.py",
    "kafka_compat/replication/replication_quota.py",
    "kafka_compat/transactions/coordinator.py",
    "kafka_compat/transactions/local_markers.py",
    "kafka_compat/transactions/marker_writer.py",
    "kafka_compat/transactions/records.py",
    "kafka_compat/transactions/transaction.py",
    "storage/log/flushing.py",
    "storage/log/leader_epochs.py",
    "storage/log/log.py",
    "storage/log/log_segments.py",
    "storage/log/producer_state.py",
    "storage/log/truncations.py",
    "storage/records/batch.py",
    "storage/records/record_keys.py",
    "storage/records/record_scan.py",
    "storage/records/records.py",
    "storage/records/validation.py",
    "storage/segments/offset_index.py",
    "storage/segments/open_segments.py",
    "storage/segments/scan.py",
    "storage/segments/segment.py",
    "storage/segments/segment_files.py",
    "storage/segments/segment_indexes.py",
    "storage/segments/time_index.py",
    "storage/segments/txn_index.py",
)
"""The way of a record: read, checked, stored, replicated, sent (docs/design/decisions/0009)."""


ASKED = os.environ.get("KAFKA_COMPAT_COMPILE", "0") not in ("", "0")

MADE: list[str] = []
"""Sources that are there while they are compiled, and of use in that form alone."""


def extensions() -> list[Extension]:
    """The C extensions; none where they are not asked for, or nothing is built yet."""
    if not ASKED or not {"bdist_wheel", "build", "build_ext"} & set(sys.argv):
        return []
    from mypyc.build import mypycify

    for room in ("storage", "coordination"):
        link = Path("kafka_compat", room)
        if not link.exists():
            link.symlink_to(Path("..", room))
    paths = [path if path.startswith("kafka_compat/") else f"kafka_compat/{path}" for path in COMPILED]
    paths += write_codec_modules()
    # What a debugger of C would want of them is more than a third of their size.
    return mypycify(paths, opt_level="1", debug_level="0", group_name="kafka_compat._compiled")


def write_codec_modules() -> list[str]:
    """Codecs of the hot messages, elsewhere made at run time; returns their paths."""
    sys.path.insert(0, "")
    from kafka_compat.protocol.codec import COMPILED_CODECS
    from kafka_compat.protocol.codec_module import codec_module

    for messages, name in COMPILED_CODECS.items():
        path = Path(*name.split(".")).with_suffix(".py")
        path.write_text(codec_module(messages.rpartition(".")[2]))
        atexit.register(path.unlink)
        MADE.append(str(path))
    return MADE


def needed_to_compile() -> list[str]:
    """mypyc, and what the sources import, whose types it reads: a build has an environment of its own."""
    settings = ConfigParser()
    settings.read("setup.cfg", encoding="utf-8")
    return [MYPYC, *settings["options"]["install_requires"].strip().splitlines()]


class OptionalExtensions(build_ext):
    """All extensions or none: half of them would not be importable. Without, a wheel is tagged as pure."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            print(f"kafka-compat: not compiled, it will run as Python: {error}", file=sys.stderr)
            for name in (*self.get_outputs(), *(Path(self.build_lib, path) for path in MADE)):
                Path(name).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []
            wheel = self.distribution.command_obj.get("bdist_wheel")
            if wheel is not None:
                wheel.root_is_pure = True


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": OptionalExtensions},
    setup_requires=needed_to_compile() if ASKED else [],
)
