"""kafka-metadata-quorum: describe the metadata quorum, and add and remove voters (KIP-595, KIP-853)."""

import os
import sys
import time
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.config.keys import ConfigError
from kafka_compat.config.listeners import Listener, parse_listeners
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import add_raft_voter, describe_quorum
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.tools import show
from kafka_compat.tools.admin import TIMEOUT_MS, connected
from kafka_compat.tools.arguments import (
    Argument,
    Arguments,
    check_required,
    fail,
    parse,
    parse_command,
    show_help,
)
from kafka_compat.tools.failure import Failure, executed, failure_of, of_client, report

_PROGRAM: Final = "kafka-metadata-quorum"
_PAGE: Final = "metadata-quorum"
_SERVER, _CONTROLLER, _CONFIG = "bootstrap-server", "bootstrap-controller", "command-config"
_BASE: Final = {name: Argument("String") for name in (_CONFIG, _SERVER, _CONTROLLER)}
_FLAG: Final = Argument("True")
_COMMANDS: Final[dict[str, dict[str, Argument]]] = {
    "describe": {"status": _FLAG, "replication": _FLAG, "human-readable": _FLAG, "json": _FLAG},
    "add-controller": {"dry-run": _FLAG},
    "remove-controller": {
        "controller-id": Argument("Integer", True),
        "controller-directory-id": Argument("String", True),
        "dry-run": _FLAG,
        "unregister": _FLAG,
    },
}
_SHORT: Final = {"-i": "--controller-id", "-d": "--controller-directory-id"}
_META_PROPERTIES: Final = "meta.properties"
_TOPIC: Final = "__cluster_metadata"
_CONTROLLERS: Final = 2
"""The endpoint type of controllers in DescribeCluster (KIP-919)."""
_RETRIABLE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_CONTROLLER)
_BACKOFF_S: Final = 0.1
_HINT: Final = "--command-config must name the settings file of a controller"


class _Refused(Exception):
    """An error whose text is the command's whole output."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    command, base, given = _parsed(arguments)
    try:
        settings = _settings(base)
        _check(command, given, base)
        bootstrap = base.get(_SERVER) or base[_CONTROLLER]
        with connected(bootstrap, _client_settings(settings)) as cluster:
            quorum = _Quorum(cluster, of_controllers=_CONTROLLER in base)
            if command == "describe":
                _describe(quorum, given)
            elif command == "add-controller":
                _add(quorum, settings, is_dry="dry-run" in given)
            else:
                _remove(quorum, given)
    except _Refused as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        return report(of_client(error))
    return 0


# --- command line


def _parsed(arguments: list[str]) -> tuple[str, Arguments, Arguments]:
    words = [_SHORT.get(word, word) for word in arguments]
    show_help(_PAGE, tuple(_COMMANDS), words)
    base, rest = parse(_PROGRAM, _PAGE, _BASE, words, until=tuple(_COMMANDS))
    if _SERVER in base and _CONTROLLER in base:
        later = max((words.index(f"--{name}"), name) for name in (_SERVER, _CONTROLLER))[1]
        other = _SERVER if later == _CONTROLLER else _CONTROLLER
        fail(_PROGRAM, _PAGE, f"argument --{later}: not allowed with argument --{other}")
    command, given = parse_command(_PROGRAM, _PAGE, _COMMANDS, rest)
    check_required(_PROGRAM, f"{_PAGE}-{command}", _COMMANDS[command], given)
    if _SERVER not in base and _CONTROLLER not in base:
        fail(_PROGRAM, _PAGE, f"one of the arguments --{_SERVER} --{_CONTROLLER} is required")
    return command, base, given


def _settings(base: Arguments) -> dict[str, str]:
    from kafka_compat.client.connection_settings import WrongSettings, read_settings

    path = base.get(_CONFIG)
    if path is None:
        return {}
    try:
        return read_settings(path)
    except FileNotFoundError:
        raise _Refused(f"{path} does not exist") from None
    except (OSError, WrongSettings) as error:
        raise Failure("java.io.IOException", str(error)) from None


def _client_settings(settings: Mapping[str, str]) -> dict[str, str]:
    # The file of add-controller contains settings of the controller, such as its request timeout.
    return {name: value for name, value in settings.items() if name not in ("request.timeout.ms", "node.id")}


def _check(command: str, given: Arguments, base: Arguments) -> None:
    """Raise _Refused for flags that do not match."""
    if command == "describe":
        if "status" in given and "replication" in given:
            raise _Refused("--status and --replication cannot be combined")
        if "status" not in given and "replication" not in given:
            raise _Refused("describe requires --status or --replication")
        if "status" in given and "human-readable" in given:
            raise _Refused("--human-readable requires --replication")
    elif command == "add-controller" and _CONFIG not in base:
        raise _Refused("add-controller requires --command-config with the settings of the new controller")


# --- requests


class _Quorum:
    """The quorum, asked through brokers or through controllers."""

    def __init__(self, cluster: Cluster, *, of_controllers: bool) -> None:
        self._cluster = cluster
        self._of_controllers = of_controllers

    def cluster_id(self) -> str:
        return str(self._know().cluster_id)

    def describe(self) -> Any:
        """Return the DescribeQuorum response. Raises Failure for its errors."""
        topic = describe_quorum.TopicData(topic_name=_TOPIC, partitions=[describe_quorum.PartitionData()])
        answer = self.ask(ApiKey.DESCRIBE_QUORUM, "describeMetadataQuorum", topics=[topic])
        if not answer.topics or not answer.topics[0].partitions:
            raise executed(failure_of(ErrorCode.UNKNOWN_SERVER_ERROR))
        return answer

    def ask(self, key: ApiKey, call: str, **request: Any) -> Any:
        """Send a request to the active controller or, through a broker, to the leader of the quorum. Retry
        while there is none. Raises Failure for errors, wrapped in an ExecutionException.
        """
        deadline = time.monotonic() + self._cluster.timeout_s
        while True:
            try:
                answer = self._ask_once(key, call, request)
            except (OSError, EOFError):
                code, message = int(ErrorCode.NOT_CONTROLLER), None
            except (KafkaError, TimedOut) as error:
                raise executed(of_client(error)) from None
            else:
                code, message = _error_of(answer)
                if not code:
                    return answer
            if code not in _RETRIABLE:
                raise executed(failure_of(code, message))
            if time.monotonic() > deadline:
                raise executed(of_client(TimedOut(f"Timed out waiting for a node assignment. Call: {call}")))
            time.sleep(_BACKOFF_S)

    def _ask_once(self, key: ApiKey, call: str, request: Mapping[str, Any]) -> Any:
        if self._of_controllers:
            controller_id = self._know().controller_id
            if controller_id < 0:
                raise ConnectionError("no active controller")
            return self._cluster.try_broker(controller_id, key, call, **request)
        if key is ApiKey.DESCRIBE_QUORUM:
            return self._cluster.ask(key, call, **request)
        return self._cluster.ask_controller(key, call, **request)

    def _know(self) -> Any:
        endpoints = {"endpoint_type": _CONTROLLERS} if self._of_controllers else {}
        answer = self._cluster.ask(ApiKey.DESCRIBE_CLUSTER, "describeCluster", **endpoints)
        if answer.error_code:
            raise executed(failure_of(answer.error_code, answer.error_message))
        if self._of_controllers:
            nodes = [
                SimpleNamespace(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
                for each in answer.brokers
            ]
            self._cluster.take(SimpleNamespace(controller_id=answer.controller_id, brokers=nodes))
        return answer


def _error_of(answer: Any) -> tuple[int, str | None]:
    for topic in () if answer.error_code else getattr(answer, "topics", ()):
        for each in topic.partitions:
            if each.error_code:
                return known_code(each.error_code), each.error_message
    return known_code(answer.error_code), answer.error_message


# --- describe


def _describe(quorum: _Quorum, given: Arguments) -> None:
    if "json" in given:
        show.as_json(_as_json(quorum.cluster_id(), quorum.describe()))
    elif "status" in given:
        cluster_id = quorum.cluster_id()
        print("\n".join(status_lines(cluster_id, quorum.describe())))
    else:
        print("\n".join(replication_lines(quorum.describe(), relative="human-readable" in given)))


def _as_json(cluster_id: str, answer: Any) -> dict[str, Any]:
    found = answer.topics[0].partitions[0]
    replicas = {
        name: [
            {
                "id": each.replica_id,
                "directory_id": show.base64_of(each.replica_directory_id),
                "log_end_offset": each.log_end_offset,
                "last_fetch_timestamp": each.last_fetch_timestamp,
                "last_caught_up_timestamp": each.last_caught_up_timestamp,
            }
            for each in some
        ]
        for name, some in (("voters", found.current_voters), ("observers", found.observers))
    }
    return {
        "cluster_id": cluster_id,
        "leader_id": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        **replicas,
    }


def status_lines(cluster_id: str, answer: Any) -> Iterable[str]:
    """Return the output of `describe --status` for a DescribeQuorum response."""
    found = answer.topics[0].partitions[0]
    leader = next(each for each in found.current_voters if each.replica_id == found.leader_id)
    slowest = min(found.current_voters, key=lambda each: each.log_end_offset)
    lag_ms = -1
    if slowest is leader:
        lag_ms = 0
    elif leader.last_caught_up_timestamp >= 0 and slowest.last_caught_up_timestamp >= 0:
        lag_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    nodes = {each.node_id: each.listeners for each in answer.nodes}
    yield f"ClusterId:              {cluster_id}"
    yield f"LeaderId:               {found.leader_id}"
    yield f"LeaderEpoch:            {found.leader_epoch}"
    yield f"HighWatermark:          {found.high_watermark}"
    yield f"MaxFollowerLag:         {leader.log_end_offset - slowest.log_end_offset}"
    yield f"MaxFollowerLagTimeMs:   {lag_ms}"
    yield f"CurrentVoters:          {_nodes(found.current_voters, nodes)}"
    yield f"CurrentObservers:       {_nodes(found.observers, nodes)}"


def _nodes(replicas: Iterable[Any], listeners: Mapping[int, Iterable[Any]]) -> str:
    texts = []
    for each in replicas:
        text = f'{{"id": {each.replica_id}'
        if each.replica_directory_id != ZERO_UUID:
            text += f', "directoryId": "{show.base64_of(each.replica_directory_id)}"'
        endpoints = ", ".join(f'"{_endpoint(one)}"' for one in listeners.get(each.replica_id, ()))
        texts.append(text + (f', "endpoints": [{endpoints}]' if endpoints else "") + "}")
    return f"[{', '.join(texts)}]"


def _endpoint(listener: Any) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"


def replication_lines(answer: Any, *, relative: bool) -> Iterable[str]:
    """Return the output of `describe --replication`, with --human-readable if `relative`."""
    found = answer.topics[0].partitions[0]
    leader = next(each for each in found.current_voters if each.replica_id == found.leader_id)
    followers = [each for each in found.current_voters if each is not leader]
    rows = [
        (
            each.replica_id,
            show.base64_of(each.replica_directory_id),
            each.log_end_offset,
            leader.log_end_offset - each.log_end_offset,
            _timestamp(each.last_fetch_timestamp, "last fetch", relative=relative),
            _timestamp(each.last_caught_up_timestamp, "last catch-up", relative=relative),
            status,
        )
        for status, replicas in (("Leader", [leader]), ("Follower", followers), ("Observer", found.observers))
        for each in replicas
    ]
    titles = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp")
    table = [(*titles, "Status"), *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))


def _timestamp(timestamp_ms: int, what: str, *, relative: bool) -> str:
    if timestamp_ms < 0 or not relative:
        return str(timestamp_ms)
    now_ms = int(time.time() * 1000)
    if not 0 < timestamp_ms <= now_ms:
        raise Failure(
            "org.apache.kafka.common.KafkaException",
            f"The time of the {what}, {timestamp_ms}, is not between 0 and this machine's time, {now_ms}",
        )
    return f"{now_ms - timestamp_ms} ms ago"


# --- changes of the voters


def _add(quorum: _Quorum, settings: Mapping[str, str], *, is_dry: bool) -> None:
    node_id = _node_id(settings)
    directory_id = _directory_id(_metadata_directory(settings))
    listeners = _controller_listeners(settings)
    if not is_dry:
        quorum.ask(
            ApiKey.ADD_RAFT_VOTER,
            "addRaftVoter",
            cluster_id=None,
            timeout_ms=TIMEOUT_MS // 2,
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=[
                add_raft_voter.Listener(name=each.name, host=each.host or "localhost", port=each.port)
                for each in listeners
            ],
        )
    endpoints = ", ".join(_endpoint(each._replace(host=each.host or "localhost")) for each in listeners)
    what = "DRY RUN of adding" if is_dry else "Added"
    directory = show.base64_of(directory_id)
    print(f"{what} controller {node_id} with directory id {directory} and endpoints: {endpoints}")


def _node_id(settings: Mapping[str, str]) -> int:
    if "node.id" not in settings:
        raise _Refused(f"node.id is missing: {_HINT}")
    text = settings["node.id"]
    if not text.lstrip("+-").isdecimal():
        raise Failure("java.lang.NumberFormatException", f'For input string: "{text}"')
    if int(text) < 0:
        raise _Refused(f"node.id={text} is negative: {_HINT}")
    if "controller" not in settings.get("process.roles", ""):
        raise _Refused(f"process.roles does not include controller: {_HINT}")
    return int(text)


def _metadata_directory(settings: Mapping[str, str]) -> str:
    if "metadata.log.dir" in settings:
        return settings["metadata.log.dir"]
    if "log.dirs" in settings:
        return settings["log.dirs"].strip().split(",")[0]
    raise _Refused(f"metadata.log.dir and log.dirs are missing: {_HINT}")


def _directory_id(directory: str) -> UUID:
    from kafka_compat.config.properties import parse_properties

    try:
        with open(os.path.join(directory, _META_PROPERTIES), "rb") as file:
            found = {name: value for name, (value, _, _) in parse_properties(file.read()).items()}
    except (OSError, ValueError):
        raise _Refused(
            f"Cannot read {os.path.join(directory, _META_PROPERTIES)}: format the directory first"
        ) from None
    if "directory.id" not in found:
        raise _Refused(f"{os.path.join(directory, _META_PROPERTIES)} has no directory.id")
    return show.uuid_of(found["directory.id"])


def _controller_listeners(settings: Mapping[str, str]) -> list[Listener]:
    if "controller.listener.names" not in settings:
        raise _Refused(f"controller.listener.names is missing: {_HINT}")
    names = [name.strip().upper() for name in settings["controller.listener.names"].split(",")]
    found = {}
    for setting in ("listeners", "advertised.listeners"):
        text = settings.get(setting, "")
        items = (item.strip().partition("://")[0].upper() for item in text.split(","))
        try:
            parsed = parse_listeners(setting, text, dict.fromkeys(items, "PLAINTEXT"))
        except ConfigError as error:
            raise Failure("java.lang.IllegalArgumentException", str(error)) from None
        found.update({listener.name: listener for listener in parsed})
    for name in names:
        if name not in found:
            raise _Refused(f"listeners and advertised.listeners have no listener {name}")
    return [found[name] for name in names]


def _remove(quorum: _Quorum, given: Arguments) -> None:
    controller_id = given.integer("controller-id")
    assert controller_id is not None
    if controller_id < 0:
        raise _Refused(f"--controller-id {controller_id} is negative")
    try:
        directory_id = show.uuid_of(given["controller-directory-id"])
    except Failure as failure:
        raise _Refused(f"--controller-directory-id: {failure.message}") from None
    is_dry, unregisters = "dry-run" in given, "unregister" in given
    if not is_dry:
        try:
            quorum.ask(
                ApiKey.REMOVE_RAFT_VOTER,
                "removeRaftVoter",
                cluster_id=None,
                voter_id=controller_id,
                voter_directory_id=directory_id,
            )
        except Failure as failure:
            cause = failure.cause or failure
            ignorable = ("UnsupportedVersionException", "VoterNotFoundException")
            if not unregisters or cause.kind.rpartition(".")[2] not in ignorable:
                raise
            raise _Refused(f"Cannot remove voter {controller_id}: {cause.message}") from None
    what = "DRY RUN of removing" if is_dry else "Removed"
    print(f"{what} KRaft controller {controller_id} with directory id {show.base64_of(directory_id)}")
    if unregisters:
        _unregister(quorum, controller_id, is_dry=is_dry)


def _unregister(quorum: _Quorum, controller_id: int, *, is_dry: bool) -> None:
    """Delete the registration of a controller. Only Kafka registers controllers, since 4.4."""
    if is_dry:
        print(f"DRY RUN of unregistering KRaft controller {controller_id}")
        return
    try:
        quorum.ask(ApiKey.UNREGISTER_CONTROLLER, "unregisterController", controller_id=controller_id)
    except Failure as failure:
        cause = failure.cause or failure
        if cause.kind.rpartition(".")[2] != "UnsupportedVersionException":
            raise _Refused(f"Cannot unregister controller {controller_id}: {cause.message}") from None
        print(f"KRaft controller {controller_id} is not registered: this cluster registers no controllers")
        return
    print(f"Unregistered KRaft controller {controller_id}")
