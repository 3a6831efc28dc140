"""The part of the build that setup.cfg cannot describe: the modules that become C extensions.

They are compiled if KAFKA_COMPAT_COMPILE=1, as set by `scripts/compile` and `scripts/build-wheel`. Otherwise,
or if compilation fails, the equivalent Python sources are used. See docs/design/decisions/0009-compiled.md.
"""

import atexit
import os
import sys
from configparser import ConfigParser
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MYPYC = "mypy == 2.4.1"
"""The exact version, because the generated C code depends on it."""

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
    "kafka_compat/groups/consumer/assignors/changed_assignment.py",
    "kafka_compat/groups/consumer/assignors/range.py",
    "kafka_compat/groups/consumer/assignors/uniform.py",
    "kafka_compat/groups/consumer/assignors/uniform_heterogeneous.py",
    "kafka_compat/groups/consumer/assignors/uniform_homogeneous.py",
    "kafka_compat/groups/consumer/java_order.py",
    "kafka_compat/groups/consumer/java_tree_bin.py",
    "kafka_compat/groups/consumer/metadata_hash.py",
    "kafka_compat/handlers/add_partitions_to_txn.py",
    "kafka_compat/handlers/api_versions.py",
    "kafka_compat/handlers/end_txn.py",
    "kafka_compat/handlers/fetch.py",
    "kafka_compat/handlers/list_offsets.py",
    "kafka_compat/handlers/metadata.py",
    "kafka_compat/handlers/produce.py",
    "kafka_compat/handlers/produce_refusals.py",
    "kafka_compat/handlers/topic_encoder.py",
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
    "kafka_compat/protocol/native.py",
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
    "storage/segments/file_slice.py",
    "storage/segments/offset_index.py",
    "storage/segments/open_segments.py",
    "storage/segments/scan.py",
    "storage/segments/segment.py",
    "storage/segments/segment_files.py",
    "storage/segments/segment_indexes.py",
    "storage/segments/time_index.py",
    "storage/segments/txn_index.py",
)
"""Modules that read, validate, store, replicate and send records (docs/design/decisions/0009)."""


ASKED = os.environ.get("KAFKA_COMPAT_COMPILE", "0") not in ("", "0")

REPLACED: dict[str, str] = {}
"""Maps the paths of sources that are replaced during the build to the paths where they are kept."""


def extensions() -> list[Extension]:
    """Return the C extensions, or none if they are disabled or the command builds nothing."""
    if not ASKED or not {"bdist_wheel", "build", "build_ext"} & set(sys.argv):
        return []
    from mypyc.build import mypycify

    for room in ("storage", "coordination"):
        link = Path("kafka_compat", room)
        if not link.exists():
            link.symlink_to(Path("..", room))
    paths = [path if path.startswith("kafka_compat/") else f"kafka_compat/{path}" for path in COMPILED]
    paths += write_native_modules()
    # Omit debug information, which would be more than a third of the extensions' size.
    made = mypycify(paths, opt_level="1", debug_level="0", group_name="kafka_compat._compiled")
    for extension in made:
        # Export only what Python looks up. Otherwise, the dynamic linker resolves each function at startup.
        extension.extra_compile_args.append("-fvisibility=hidden")
    return made


def write_native_modules() -> list[str]:
    """Replace modules of messages by native ones, until this process exits. Return the paths to compile."""
    sys.path.insert(0, "")
    from kafka_compat.protocol.codec import HOT_APIS
    from kafka_compat.protocol.native_module import native_module

    paths = []
    sources = {api: native_module(api) for api in HOT_APIS}
    for api, source in sources.items():
        path = Path("kafka_compat/protocol/messages", f"{api}.py")
        kept = path.with_name(f"{api}_schema.py")
        path.rename(kept)
        atexit.register(kept.replace, path)
        path.write_text(source)
        REPLACED[str(path)] = str(kept)
        paths.append(str(path))
    return paths


def needed_to_compile() -> list[str]:
    """Return mypyc, and the packages that the sources import, because mypyc reads their types."""
    settings = ConfigParser()
    settings.read("setup.cfg", encoding="utf-8")
    return [MYPYC, *settings["options"]["install_requires"].strip().splitlines()]


class OptionalExtensions(build_ext):
    """Builds all extensions or none, because some alone cannot be imported. Without them, a wheel is pure."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            print(f"kafka-compat: not compiled, it will run as Python: {error}", file=sys.stderr)
            for name in self.get_outputs():
                Path(name).unlink(missing_ok=True)
            for path, kept in REPLACED.items():
                if Path(self.build_lib, kept).exists():
                    Path(self.build_lib, kept).replace(Path(self.build_lib, path))
            self.extensions = self.distribution.ext_modules = []
            wheel = self.distribution.command_obj.get("bdist_wheel")
            if wheel is not None:
                wheel.root_is_pure = True


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": OptionalExtensions},
    setup_requires=needed_to_compile() if ASKED else [],
)
