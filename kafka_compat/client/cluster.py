"""Client for all brokers of a cluster, used by commands. For each request, it chooses a broker and the newest
version that client and broker support. It retries until a broker responds or default.api.timeout.ms passes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self

from kafka_compat.client.connection import Connection
from kafka_compat.client.connection_settings import (
    ConnectionSettings,
    WrongSettings,
    addresses,
    connect,
    connection_settings,
)
from kafka_compat.client.partitions import error_codes
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class
from kafka_compat.protocol.schema import schema_of

CLIENT_ID: Final = "adminclient-1"
_BACKOFF_S: Final = 0.1
_RECONNECT_MIN_S: Final = 0.05
_LIMIT_MIN_S: Final = 0.1
_RECONNECT_MAX_S: Final = 1.0
_NEWEST: Final = {
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 5,
}
"""Newest versions that this client sends. Newer ones are only for brokers (AddPartitionsToTxn), return new
producer epochs (EndTxn, KIP-890), or identify topics by ID.
"""
_NEEDS_TIME: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class TimedOut(Exception):
    """Raised if no broker responds within default.api.timeout.ms. The text is from Kafka's admin client."""


class Node(NamedTuple):
    """A broker's address on one listener. `node_id` is negative for an entry of bootstrap.servers."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        """Format the node as Kafka's tools do."""
        rack = "null" if self.rack is None else self.rack
        return f"{self.host}:{self.port} (id: {self.node_id} rack: {rack} isFenced: false)"


class Cluster:
    """A blocking, single-threaded client for a cluster. `warn` is called if a connection fails."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, str] | None = None,
        *,
        client_id: str = CLIENT_ID,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Configure the client with the Java client's security and timeout settings, without connecting.
        Raises WrongSettings if a setting is invalid.
        """
        given = dict(settings or {})
        self.bootstrap = addresses(bootstrap)
        self.timeout_s = _milliseconds(given, "default.api.timeout.ms", 60000) / 1000
        request_timeout_s = _milliseconds(given, "request.timeout.ms", 30000) / 1000
        self._connection_settings: ConnectionSettings = connection_settings(
            given, min(request_timeout_s, self.timeout_s)
        )
        self.client_id = given.get("client.id", client_id)
        self._warn = warn
        self._open: dict[int, Connection] = {}
        self._versions: dict[int, dict[int, tuple[int, int]]] = {}
        self._any = -1
        self.nodes: dict[int, Node] = {
            -1 - index: Node(-1 - index, *address) for index, address in enumerate(self.bootstrap)
        }
        self.controller_id = -1
        self._is_known = False
        self._deadline = 0.0
        self._unreachable: dict[str, str] = {}
        """Why the last attempts to reach brokers failed, by address, since any broker responded."""

    # --- requests

    def ask(self, key: ApiKey, call: str, **request: Any) -> Any:
        """Send a request to any broker, and return the response. `call` is the admin client's name for the
        call, used in error messages. Raises TimedOut if no broker responds, KafkaError if a broker rejects
        the request or the login, Untrusted if a broker fails to authenticate itself, and WrongSettings if the
        SASL mechanism is unsupported or its credentials are not configured.
        """
        with self._in_time():
            return self._ask_any(key, call, request)

    def ask_broker(self, node_id: int, key: ApiKey, call: str, **request: Any) -> Any:
        """Send a request to one broker, and return the response. Retries and raises errors like `ask`."""
        with self._in_time():
            self._know(call)
            return self._ask_node(node_id, key, call, request)

    def try_broker(self, node_id: int, key: ApiKey, call: str, **request: Any) -> Any:
        """Send a request to one broker, and return the response. The request is not retried, except once on a
        new connection. Raises OSError, EOFError or ValueError if it fails, and the same errors as `ask`.
        """
        while True:
            was_kept = node_id in self._open
            try:
                return self._ask_once(node_id, key, call, request)
            except (OSError, EOFError, ValueError) as error:
                self._hang_up(node_id, error)
                if not was_kept or isinstance(error, TimeoutError):
                    raise

    def tell_broker(self, node_id: int, key: ApiKey, call: str, **request: Any) -> None:
        """Send one broker a request that has no response. Retries and raises errors like `ask`."""
        with self._in_time():
            self._know(call)
            self._ask_node(node_id, key, call, request, answered=False)

    def ask_controller(self, key: ApiKey, call: str, **request: Any) -> Any:
        """Send a request to the controller, and return the response. Retry after NOT_CONTROLLER. Raises the
        same errors as `ask`.
        """
        with self._in_time():
            while True:
                self._know(call)
                while self.controller_id not in self.nodes:
                    self._pause(call)
                    self._learn(call)
                answer = self._ask_node(self.controller_id, key, call, request)
                if ErrorCode.NOT_CONTROLLER not in error_codes(answer):
                    return answer
                self._pause(call)
                self._learn(call)

    def coordinator(self, name: str, call: str, *, of_transactions: bool = False) -> int:
        """Return the broker ID of a group's or transactional ID's coordinator. Raises errors like `ask`."""
        key_type = int(of_transactions)
        with self._in_time():
            while True:
                self._know(call)
                fields: dict[str, Any] = {"key": name, "key_type": key_type, "coordinator_keys": [name]}
                answer = self._ask_any(ApiKey.FIND_COORDINATOR, call, fields)
                found = answer.coordinators[0] if answer.coordinators else answer
                if not found.error_code:
                    self.nodes.setdefault(found.node_id, Node(found.node_id, found.host, found.port))
                    return int(found.node_id)
                if found.error_code not in _NEEDS_TIME:
                    raise KafkaError(known_code(found.error_code), found.error_message or "")
                self._pause(call)

    def ask_coordinator(
        self, name: str, key: ApiKey, call: str, *, of_transactions: bool = False, **request: Any
    ) -> Any:
        """Send a request to the coordinator of a group or a transactional ID, and return the response. Retry
        after transient errors. Raises the same errors as `ask`.
        """
        with self._in_time():
            while True:
                node_id = self.coordinator(name, call, of_transactions=of_transactions)
                answer = self._ask_node(node_id, key, call, request)
                if not {ErrorCode.NOT_COORDINATOR, *_NEEDS_TIME} & set(error_codes(answer)):
                    return answer
                self._pause(call)

    def metadata(
        self, topics: Iterable[str] | None, call: str = "metadata", *, may_create: bool = False
    ) -> Any:
        """Return the metadata for these topics, or for all topics if `topics` is None. `may_create` allows
        brokers to create missing topics. Raises the same errors as `ask`.
        """
        from kafka_compat.protocol.messages.metadata import MetadataRequestTopic

        asked = None
        if topics is not None:
            asked = [MetadataRequestTopic(name=name) for name in topics]
        with self._in_time():
            answer = self._ask_any(
                ApiKey.METADATA,
                call,
                {
                    "topics": asked,
                    "allow_auto_topic_creation": may_create,
                    "include_topic_authorized_operations": False,
                },
            )
            self.take(answer)
            return answer

    def brokers(self, call: str = "describeCluster") -> list[Node]:
        """Return the live brokers, sorted by ID. Raises the same errors as `ask`."""
        with self._in_time():
            self._learn(call)
        return [self.nodes[node_id] for node_id in sorted(self.nodes) if node_id >= 0]

    def version(self, node_id: int, key: ApiKey, call: str) -> int:
        """Return the newest version of an API that broker and client support. Raises errors like `ask`."""
        with self._in_time():
            return self._version(node_id, key, call)

    def api_versions(self, node_id: int, call: str) -> dict[int, tuple[int, int]]:
        """Return a broker's range of supported versions for each API. Raises the same errors as `ask`."""
        with self._in_time():
            self._connection(node_id, call)
            return self._versions[node_id]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    # --- connections and retries

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Apply a shorter timeout to all requests within the `with` block together."""
        before = self._deadline
        limit = time.monotonic() + max(seconds, 0.0)
        self._deadline = min(before, limit) if before else limit
        try:
            yield
        finally:
            self._deadline = before

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Apply one timeout to all requests within the `with` block."""
        outermost = not self._deadline
        if outermost:
            self._deadline = time.monotonic() + self.timeout_s
        try:
            yield
        finally:
            if outermost:
                self._deadline = 0.0

    def _pause(self, call: str, seconds: float = _BACKOFF_S) -> None:
        if time.monotonic() + seconds > self._deadline:
            if self._unreachable:
                self._warn(f"No broker could be reached: {self._why_unreachable()}")
            raise TimedOut(f"Timed out waiting for a node assignment. Call: {call}")
        time.sleep(seconds)

    def _why_unreachable(self) -> str:
        """Return which brokers could not be reached since any broker responded, and why."""
        return ", ".join(f"{address} ({reason})" for address, reason in self._unreachable.items())

    def _know(self, call: str) -> None:
        if not self._is_known:
            self._learn(call)

    def _learn(self, call: str) -> None:
        self.take(self._ask_any(ApiKey.METADATA, call, {"topics": []}))

    def take(self, answer: Any) -> None:
        """Store the brokers and the controller from a Metadata response."""
        self.controller_id = answer.controller_id
        found = {one.node_id: Node(one.node_id, one.host, one.port, one.rack) for one in answer.brokers}
        known = {key: node for key, node in self.nodes.items() if key < 0} | found
        for key in [key for key in self._open if key not in known or known[key][1:3] != self.nodes[key][1:3]]:
            self._forget(key)
        self.nodes = known
        self._is_known = bool(found)

    def _ask_any(self, key: ApiKey, call: str, request: Mapping[str, Any]) -> Any:
        wait_s = _RECONNECT_MIN_S
        while True:
            # Try the broker with the latest response first, then all others, including bootstrap servers.
            for node_id in sorted(self.nodes, key=lambda each: (each != self._any, each >= 0, -each)):
                try:
                    answer = self._ask_once(node_id, key, call, request)
                except (OSError, EOFError) as error:
                    self._hang_up(node_id, error)
                else:
                    self._any = node_id
                    self._unreachable.clear()
                    return answer
            self._pause(call, wait_s)
            wait_s = min(wait_s * 2, _RECONNECT_MAX_S)

    def _ask_node(
        self, node_id: int, key: ApiKey, call: str, request: Mapping[str, Any], *, answered: bool = True
    ) -> Any:
        wait_s = _RECONNECT_MIN_S
        while True:
            if node_id in self.nodes:
                try:
                    return self._ask_once(node_id, key, call, request, answered=answered)
                except (OSError, EOFError) as error:
                    self._hang_up(node_id, error)
            self._pause(call, wait_s)
            wait_s = min(wait_s * 2, _RECONNECT_MAX_S)
            self._learn(call)

    def _hang_up(self, node_id: int, error: Exception) -> None:
        self._close(self._open.get(node_id))
        node = self.nodes[node_id]
        self._unreachable[f"{node.host}:{node.port}"] = _reason(error)
        where = f"Connection to node {node_id} ({node.host}/{node.host}:{node.port})"
        self._warn(f"{where} failed.")

    def _close(self, connection: Connection | None) -> None:
        # Forget all node IDs of the connection, because a broker in bootstrap.servers has two IDs.
        for key in [key for key, one in self._open.items() if one is connection]:
            self._forget(key)

    def _forget(self, node_id: int) -> None:
        connection = self._open.pop(node_id)
        if connection not in self._open.values():
            connection.close()

    def _ask_once(
        self, node_id: int, key: ApiKey, call: str, request: Mapping[str, Any], *, answered: bool = True
    ) -> Any:
        connection = self._connection(node_id, call)
        version = self._version(node_id, key, call)
        connection.set_timeout(self._limit_s())
        try:
            if answered:
                return connection.ask(key, version, **request)
            return connection.send(key, version, request_class(key)(**request))
        except BaseException:
            # Also after Ctrl-C or a signal: the next request would read this response.
            self._close(connection)
            raise

    def _connection(self, node_id: int, call: str) -> Connection:
        found = self._open.get(node_id)
        if found is None:
            node = self.nodes[node_id]
            # Reuse a connection to the same address: in the metadata, a bootstrap server has a different ID.
            same = next((key for key in self._open if self.nodes[key][1:3] == node[1:3]), None)
            if same is None:
                found = self._connect(node)
                try:
                    answer = found.ask(ApiKey.API_VERSIONS, 0)
                except ValueError as error:
                    # Raise a retriable error: a broker may soon replace the process that listens on the port.
                    found.close()
                    raise ConnectionError(str(error)) from error
                self._versions[node_id] = {
                    one.api_key: (one.min_version, one.max_version) for one in answer.api_keys
                }
            else:
                found, self._versions[node_id] = self._open[same], self._versions[same]
            self._open[node_id] = found
        return found

    def _connect(self, node: Node) -> Connection:
        """Open a connection within the current timeout. Raises the same errors as `connect`."""
        settings = self._connection_settings._replace(timeout_s=self._limit_s())
        return connect(settings, node.host, node.port, self.client_id)

    def _limit_s(self) -> float:
        """Return the timeout of the next connection or request."""
        limit_s = self._connection_settings.timeout_s
        if not self._deadline:
            return limit_s
        return min(limit_s, max(self._deadline - time.monotonic(), _LIMIT_MIN_S))

    def _version(self, node_id: int, key: ApiKey, call: str) -> int:
        self._connection(node_id, call)
        low, high = self._versions[node_id].get(key, (0, -1))
        known = schema_of(request_class(key)).versions
        version = min(high, known.high, _NEWEST.get(key, known.high))
        if version < max(low, known.low):
            text = f"The node does not support {key.name}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        return version


def _milliseconds(settings: Mapping[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default)).strip()
    if not text.isdecimal():
        raise WrongSettings(f"{name}={text}: expected a number of milliseconds")
    return int(text)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no response"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
