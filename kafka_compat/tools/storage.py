"""kafka-storage: format the log directories of a node in KRaft mode, and show what they contain.

A node also formats empty directories when it starts. `format` is needed to choose the first voters of a
cluster whose log names the voters (KIP-853), and by scripts.
"""

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final
from uuid import UUID

from kafka_compat.config import BrokerConfig
from kafka_compat.config.keys import ConfigError
from kafka_compat.config.properties import parse_properties
from kafka_compat.config.quorum import QuorumConfig
from kafka_compat.coordination.raft.values import ReplicaKey, Voter
from kafka_compat.quorum.metadata_directory import (
    check_directories,
    new_directory_id,
    read_properties,
    write_bootstrap,
    write_properties,
)
from kafka_compat.storage.directories.checkpoints import META_PROPERTIES, decode_topic_id, encode_topic_id
from kafka_compat.storage.directories.directory_claim import stored_meta_properties
from kafka_compat.storage.errors import InconsistentMetaProperties
from kafka_compat.tools import features
from kafka_compat.tools.arguments import (
    Argument,
    Arguments,
    check_required,
    fail,
    parse,
    parse_command,
    show_help,
)
from kafka_compat.tools.failure import Failure, illegal_argument

_PROGRAM: Final = "kafka-storage"
_PAGE: Final = "storage"
_CONFIG: Final = Argument("String", True, "c")
_COMMANDS: Final[dict[str, dict[str, Argument]]] = {
    "info": {"config": _CONFIG},
    "format": {
        "config": _CONFIG,
        "cluster-id": Argument("String", True, "t"),
        "add-scram": Argument(letter="S"),
        "ignore-formatted": Argument("True", letter="g"),
        "release-version": Argument(letter="r"),
        "feature": Argument(letter="f"),
        "standalone": Argument("True", letter="s"),
        "no-initial-controllers": Argument("True", letter="N"),
        "initial-controllers": Argument(letter="I"),
    },
    "version-mapping": {"release-version": Argument(letter="r")},
    "feature-dependencies": {"feature": Argument("String", True, "f")},
    "random-uuid": {},
}
_SHORT: Final = {argument.letter: name for flags in _COMMANDS.values() for name, argument in flags.items()}
_EXCLUSIVE: Final = ("standalone", "no-initial-controllers", "initial-controllers")
_NEWEST: Final = 33
"""The highest metadata.version without unstable features in Kafka 4.4."""
_SHARE_VERSION_2: Final = 31
"""The lowest metadata.version with which new clusters of Kafka 4.4 have share.version 2."""


class _Refused(Exception):
    """An error whose text is the command's whole output."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    command, given, levels = _parsed(arguments)
    try:
        if command == "info":
            return _info(given)
        if command == "format":
            _format(given, levels)
        elif command == "version-mapping":
            _version_mapping(given)
        elif command == "feature-dependencies":
            return features.run([command, *(word for level in levels for word in ("--feature", level))])
        else:
            print(encode_topic_id(new_directory_id()))
    except _Refused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


# --- command line


def _parsed(arguments: list[str]) -> tuple[str, Arguments, Sequence[str]]:
    """Return the command, its flags, and all values of --feature, which may be repeated."""
    words = [f"--{_SHORT[word[1:]]}" if word[1:] in _SHORT and len(word) == 2 else word for word in arguments]
    show_help(_PAGE, tuple(_COMMANDS), words)
    _, rest = parse(_PROGRAM, _PAGE, {}, words, until=tuple(_COMMANDS))
    command, given = parse_command(_PROGRAM, _PAGE, _COMMANDS, rest)
    page, known, more = f"{_PAGE}-{command}", _COMMANDS[command], rest[1:]
    chosen = sorted((more.index(f"--{name}"), name) for name in _EXCLUSIVE if f"--{name}" in more)
    if len(chosen) > 1:
        first, second = (known[name].named(name) for _, name in chosen[:2])
        fail(_PROGRAM, page, f"argument {second}: not allowed with argument {first}")
    check_required(_PROGRAM, page, known, given)
    levels = [value for flag, value in pairwise(more) if flag == "--feature"]
    levels += [word.partition("=")[2] for word in more if word.startswith("--feature=")]
    return command, given, levels


def _quorum_of(path: str) -> tuple[QuorumConfig, Sequence[str]]:
    """Return a node's settings and its log directories. Raises Failure, as Kafka does."""
    try:
        with open(path, "rb") as file:
            static = {name: value for name, (value, _, _) in parse_properties(file.read()).items()}
    except FileNotFoundError:
        raise Failure("java.nio.file.NoSuchFileException", path) from None
    except (OSError, ValueError) as error:
        raise Failure("java.io.IOException", str(error)) from None
    for name in ("process.roles", "node.id"):
        if name not in static:
            raise Failure(
                "org.apache.kafka.common.config.ConfigException",
                f"{name} is required, but not set",
            )
    try:
        config = BrokerConfig(static)
    except ConfigError as error:
        raise Failure("org.apache.kafka.common.config.ConfigException", str(error)) from None
    if config.quorum is None:
        raise _Refused(f"{path} sets zookeeper.connect: directories of such brokers are not formatted")
    return config.quorum, config.log_dirs


# --- commands


def _info(given: Arguments) -> int:
    quorum, log_dirs = _quorum_of(given["config"])
    found: list[str] = []
    problems: list[str] = []
    first: Mapping[str, str] | None = None
    for directory in sorted({*log_dirs, quorum.metadata_log_dir}):
        if not os.path.isdir(directory):
            what = "is not a directory" if os.path.exists(directory) else "does not exist"
            problems.append(f"{directory} {what}")
            continue
        found.append(directory)
        if not os.path.exists(f"{directory}/{META_PROPERTIES}"):
            problems.append(f"{directory} is not formatted.")
            continue
        try:
            stored = stored_meta_properties([directory])
        except InconsistentMetaProperties as error:
            problems.append(f"Error loading {directory}/{META_PROPERTIES}: {error}")
            continue
        if first is None:
            first = stored
        elif first.get("cluster.id") != stored.get("cluster.id"):
            problems.append("Mismatched cluster IDs between storage directories.")
        elif _node_id_in(first) != _node_id_in(stored):
            problems.append("Mismatched node IDs between storage directories.")
    if found:
        _print_list("Found log directory:" if len(found) == 1 else "Found log directories:", found)
    if first is not None:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(first.items()))
        print(f"Found metadata: {{{shown}}}\n")
    if problems:
        _print_list("Found problem:" if len(problems) == 1 else "Found problems:", problems)
    return 1 if problems else 0


def _node_id_in(stored: Mapping[str, str]) -> str | None:
    return stored.get("node.id", stored.get("broker.id"))


def _print_list(heading: str, lines: Sequence[str]) -> None:
    print("\n".join([heading, *(f"  {line}" for line in lines), ""]))


def _format(given: Arguments, levels: Sequence[str]) -> None:
    quorum, log_dirs = _quorum_of(given["config"])
    cluster_id = given["cluster-id"]
    _check_cluster_id(cluster_id)
    _check_flags(given, quorum, levels)
    voters = _voters(given, quorum)
    directories = []
    for directory in dict.fromkeys((*log_dirs, quorum.metadata_log_dir)):
        if os.path.exists(directory) and not os.path.isdir(directory):
            print(f"Skipped log directory {directory}, because it cannot be read.")
        else:
            directories.append(directory)
    if not directories:
        raise _Refused("No log directory can be formatted.")
    try:
        found = check_directories(directories, quorum.metadata_log_dir, quorum.node_id, cluster_id)
    except InconsistentMetaProperties as error:
        raise Failure("java.lang.RuntimeException", str(error)) from None
    if found.properties and "ignore-formatted" not in given:
        directory = min(found.properties)
        raise _Refused(
            f"Log directory {directory} is formatted already: --ignore-formatted skips such directories"
        )
    unformatted = [each for each in directories if each in found.unformatted]
    if not unformatted:
        print("All log directories are formatted already.")
    for directory in sorted(unformatted, key=lambda each: (each == quorum.metadata_log_dir, each)):
        directory_id = None
        kind = "data directory"
        if directory == quorum.metadata_log_dir:
            kind = "metadata directory"
            if voters:
                kind = f"dynamic metadata {'voter ' if quorum.node_id in voters else ''}directory"
                if quorum.node_id in voters:
                    directory_id = voters[quorum.node_id].key.directory_id
        print(f"Formatting {kind} {directory}.")
        try:
            if directory == quorum.metadata_log_dir and voters:
                write_bootstrap(directory, voters, int(time.time() * 1000))
            write_properties(directory, quorum.node_id, cluster_id, directory_id)
        except OSError as error:
            raise Failure("java.io.IOException", str(error)) from None


def _check_cluster_id(cluster_id: str) -> None:
    """Raise _Refused for an ID that meta.properties would not return unchanged, as an unset variable of a
    script. Other IDs need not be UUIDs, as with Kafka's command.
    """
    if (
        not cluster_id.isprintable()
        or "\\" in cluster_id
        or not cluster_id
        or cluster_id != cluster_id.strip()
    ):
        raise _Refused(
            f"--cluster-id {cluster_id!r} is not a cluster ID: use the ID of the cluster, or a new one of "
            "kafka-storage random-uuid"
        )


def _check_flags(given: Arguments, quorum: QuorumConfig, levels: Sequence[str]) -> None:
    """Raise _Refused for flags that do not match the settings."""
    if quorum.is_static and ("standalone" in given or "initial-controllers" in given):
        raise _Refused(
            "--standalone and --initial-controllers exclude controller.quorum.voters: use "
            "controller.quorum.bootstrap.servers instead"
        )
    if not quorum.is_static and quorum.is_controller and not {*_EXCLUSIVE} & given.keys():
        raise _Refused(
            "A controller without controller.quorum.voters requires --standalone, --initial-controllers or "
            "--no-initial-controllers."
        )
    if "standalone" in given and not quorum.is_controller:
        raise _Refused("--standalone requires process.roles with controller.")
    if "add-scram" in given:
        raise _Refused(
            "--add-scram is not supported: set kafka.compat.scram.credentials.file to a file with the "
            "credentials"
        )
    if "release-version" in given:
        _level_of(given["release-version"], newest=_NEWEST)
    if "release-version" in given or levels:
        print(
            "--release-version and --feature have no effect: kafka-features changes feature levels when the "
            "cluster runs",
            file=sys.stderr,
        )


def _voters(given: Arguments, quorum: QuorumConfig) -> dict[int, Voter]:
    """Return the first voters of the cluster, or nothing if controller.quorum.voters or other nodes name
    them.
    """
    if "standalone" in given:
        name = quorum.listener_name
        listener = next(each for each in quorum.listeners if each.name == name)
        address = quorum.advertised.get(name) or (listener.host or socket.getfqdn(), listener.port)
        key = ReplicaKey(quorum.node_id, _directory_id(quorum.metadata_log_dir) or new_directory_id())
        return {quorum.node_id: Voter(key, {name: address})}
    if "initial-controllers" in given:
        return parse_controllers(given["initial-controllers"], quorum.listener_name)
    return {}


def _directory_id(directory: str) -> UUID | None:
    try:
        found = read_properties(directory)
    except InconsistentMetaProperties:
        return None
    return found.directory_id if found is not None else None


def parse_controllers(text: str, listener_name: str) -> dict[int, Voter]:
    """Parse the voters in --initial-controllers: ID@HOST:PORT:DIRECTORY, separated by commas. Raises Failure
    if an entry is invalid.
    """
    voters: dict[int, Voter] = {}
    for entry in filter(None, (item.strip() for item in text.split(","))):
        node_id, at, address = entry.partition("@")
        if not at:
            raise illegal_argument("No @ found in dynamic voter string.")
        if not node_id.isdecimal():
            raise illegal_argument("The node ID of a voter must be a number.")
        host, closing, after = address.removeprefix("[").partition("]" if address.startswith("[") else ":")
        if closing == "]" and after.startswith(":"):
            after = after[1:]
        elif not closing or closing == "]":
            raise illegal_argument(f"Invalid voter '{entry}': expected ID@HOST:PORT:DIRECTORY.")
        port, colon, directory = after.partition(":")
        if not colon:
            raise illegal_argument("No colon following port could be found.")
        if not port.isdecimal() or not 0 <= int(port) < 65536:
            raise illegal_argument("The port of a voter must be a number up to 65535.")
        try:
            directory_id = decode_topic_id(directory)
        except ValueError:
            raise illegal_argument("The directory ID of a voter must be a UUID in base64.") from None
        if int(node_id) in voters:
            raise illegal_argument(f"Node {node_id} is listed twice.")
        key = ReplicaKey(int(node_id), directory_id)
        voters[int(node_id)] = Voter(key, {listener_name: (host, int(port))})
    if not voters:
        raise illegal_argument("No voters given.")
    return voters


def _version_mapping(given: Arguments) -> None:
    release = given.get("release-version")
    level = _NEWEST if release is None else _level_of(release)
    print(f"metadata.version={level} ({release or features.name_of(level)})")
    found = features.of_release(level)
    if level >= _SHARE_VERSION_2:
        found["share.version"] = 2
    for name, each in found.items():
        print(f"{name}={each}")


def _level_of(release: str, newest: int = sys.maxsize) -> int:
    """Return the metadata.version level of a release. Raises _Refused if it is unknown or above `newest`."""
    lowest = 7
    names: list[str] = []
    while (name := features.name_of(lowest + len(names))) is not None and lowest + len(names) <= newest:
        names.append(name)
    for index, name in reversed(list(enumerate(names))):
        if release == name or (release == name.partition("-")[0] and lowest + index <= _NEWEST):
            return lowest + index
    known = ", ".join(names)
    raise _Refused(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
