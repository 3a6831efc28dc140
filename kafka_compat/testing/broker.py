"""Start and stop a broker, or a cluster of brokers, for tests."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafka_compat.testing.broker_process import (
    CLIENT,
    CONTAINERS,
    INTERNAL,
    BrokerFailed,
    BrokerProcess,
    adjacent_ports,
)
from kafka_compat.testing.control import Control

if TYPE_CHECKING:
    from kafka_compat.testing.client_settings import CertificateFiles, Login
    from kafka_compat.testing.security import Security
    from kafka_compat.testing.token_issuer import TokenIssuer

__all__ = ["BrokerFailed", "KafkaBroker", "KafkaCluster"]

_START_TIMEOUT_S = 30.0
_HOST = "127.0.0.1"
_QUICK = {
    "kafka.compat.http.listener": f"http://{_HOST}:0",
    "kafka.compat.control.enable": True,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""Settings for tests: groups do not wait for more members, and internal topics have one partition."""

T = TypeVar("T")

PLAINTEXT = "PLAINTEXT"
_EMULATED = "kafka.compat.emulated.version"


def _security_of(
    kind: str | None, users: Mapping[str, str] | None, settings: Mapping[str, object]
) -> "Security | None":
    if kind is None:
        if users is not None:
            raise ValueError("users: the broker requires no login; set security as well")
        return None
    if "listeners" in settings:
        raise ValueError("security: the broker chooses its listeners; remove the setting listeners")
    # Most brokers for tests have no security, so import its modules only here.
    from kafka_compat.testing.security import Security

    return Security(kind, users)


def _plaintext(*listeners: str) -> str:
    return ",".join(f"{name}:{PLAINTEXT}" for name in listeners)


async def _in_thread(function: Callable[[], T]) -> T:
    # Import asyncio here, because every run of pytest imports this file, but few use an event loop.
    import asyncio

    return await asyncio.to_thread(function)


class KafkaBroker:
    """A broker on a free port of 127.0.0.1, in its own process. It exits with the current process.

    Use it with `with` or `async with`. `settings` maps Kafka's names of broker settings to values. `stop`,
    `kill` and `start` keep the data and the port. The data is deleted at the end of the `with` block.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        emulate: str | None = None,
        containers: bool | str = False,
        start_timeout_s: float = _START_TIMEOUT_S,
        verbose: bool = False,
    ) -> None:
        """`security` is how clients log in: "plain", "scram", "mtls" or "oauthbearer", over TLS. `users` maps
        names to passwords; the default is one user, alice. `emulate` is a Kafka version, such as "2.8", whose
        APIs and features clients see. With `containers`, the broker also listens on all addresses of this
        machine, for clients in containers (see `container_bootstrap_servers`); a text is the name or address
        at which they reach this machine. With `verbose`, the broker logs at level INFO instead of WARN.
        Raises ValueError if an argument is invalid.
        """
        if containers and (security is not None or "listeners" in (settings or {})):
            raise ValueError(
                "containers: the broker chooses its listeners, without a login; remove security and the "
                "setting listeners"
            )
        self._containers = containers
        self._start_timeout_s = start_timeout_s
        self._security = _security_of(security, users, settings or {})
        if emulate is not None:
            settings = {_EMULATED: emulate, **(settings or {})}
        self._has_internal_listener = security is not None or emulate is not None
        self._settings = dict(settings or {})
        self._process = BrokerProcess(
            {**_QUICK, **self._settings}, [*self._arguments(), *(["--verbose"] if verbose else [])]
        )
        self._brokers: list[dict[str, Any]] = []
        self._control: Control | None = None

    def _arguments(self) -> list[str]:
        return []

    def _first_ports(self, listeners: int) -> list[int]:
        """Return a port for each listener; 0 means any free port."""
        return [0] * listeners if not self._containers else [*[0] * (listeners - 1), adjacent_ports(1)]

    # --- addresses and process

    @property
    def bootstrap_servers(self) -> str:
        """Addresses for clients: `host:port`, comma-separated for a cluster."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses())

    @property
    def container_bootstrap_servers(self) -> str:
        """Addresses for clients in containers on this machine, if the broker was started with `containers`.
        On Linux, the host is this machine's address; elsewhere, it is host.docker.internal.
        """
        if not self._containers:
            raise RuntimeError("the broker does not listen for containers: start it with containers=True")
        self._addresses()
        return ",".join(
            f"{self._container_host}:{broker['listeners'][CONTAINERS]['port']}" for broker in self._brokers
        )

    @property
    def host(self) -> str:
        """Host of the first listener."""
        return self._addresses()[0][0]

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self._addresses()[0][1]

    @property
    def pid(self) -> int:
        """Process ID of the current or last process."""
        return self._process.child.pid

    @property
    def running(self) -> bool:
        """Whether the broker is running."""
        return self._process.running

    @property
    def log(self) -> str:
        """The broker's log since this object was created."""
        return self._process.log

    @property
    def control(self) -> Control:
        """Client of the control API, for operations without a Kafka API, such as advancing time."""
        if self._control is None:
            raise RuntimeError("the broker was not started, or its settings disable the control API")
        return self._control

    def _addresses(self) -> list[tuple[str, int]]:
        if not self._brokers:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        first = [next(iter(broker["listeners"].values())) for broker in self._brokers]
        return [(listener["host"], listener["port"]) for listener in first]

    def _internal_address(self) -> tuple[str, int]:
        """Return the address of the listener that needs no login."""
        self._addresses()
        listeners = self._brokers[0]["listeners"]
        found = listeners[INTERNAL] if self._has_internal_listener else next(iter(listeners.values()))
        return found["host"], found["port"]

    # --- security; see also kafka_compat.testing.security

    def client_settings(
        self,
        client: str,
        user: str | None = None,
        *,
        password: str | None = None,
        token: str | None = None,
        certificate: "CertificateFiles | None" = None,
    ) -> Any:
        """Return the settings with which a client connects and logs in. `client` is "java", "librdkafka",
        "confluent-kafka", "kafka-python", "aiokafka", "franz-go" or "kafkajs"; the last two return source
        code. The default user is the first one. `password`, `token` and `certificate` replace the user's
        own. Raises ValueError if an argument is unknown or does not fit the broker's security.
        """
        from kafka_compat.testing.client_settings import SETTINGS

        login = self._login(user, password=password, token=token, certificate=certificate)
        if client not in SETTINGS:
            raise ValueError(f"client {client!r}: expected one of {', '.join(SETTINGS)}")
        return SETTINGS[client](login)

    def client_file(
        self, client: str, directory: str | Path, user: str | None = None, **secrets: Any
    ) -> Path:
        """Write the settings of a client that reads them from a file, and return its path. `client` is
        "java", "librdkafka", "franz-go" or "kafkajs"; `secrets` are those of `client_settings`. Raises
        ValueError if an argument is unknown.
        """
        from kafka_compat.testing.client_settings import FILES

        if client not in FILES:
            raise ValueError(f"client {client!r}: expected one of {', '.join(FILES)}")
        name, content = FILES[client]
        path = Path(directory) / name
        path.write_text(content(self._login(user, **secrets)))
        return path

    def certificate(self, user: str, *, expired: bool = False, forged: bool = False) -> "CertificateFiles":
        """Return a new client certificate for a user of a broker with security="mtls". An expired
        certificate was valid until yesterday; a forged one is signed by another authority with the same name.
        """
        if self._security is None:
            raise RuntimeError("the broker has no certificates: start it with security='mtls'")
        return self._security.certificate(user, expired=expired, forged=forged)

    @property
    def issuer(self) -> "TokenIssuer":
        """The token issuer of a broker with security="oauthbearer", whose method `token` creates tokens."""
        if self._security is None:
            raise RuntimeError("the broker has no token issuer: start it with security='oauthbearer'")
        return self._security.issuer

    def _login(self, user: str | None, **secrets: Any) -> "Login":
        if self._security is not None:
            return self._security.login(self.bootstrap_servers, user, **secrets)
        from kafka_compat.testing.client_settings import Login

        if user is not None or any(each is not None for each in secrets.values()):
            raise ValueError("the broker requires no login: start it with security=…")
        return Login(self.bootstrap_servers)

    # --- topics and state; modules are imported on demand, so that the import of this module is fast

    def topics(self) -> list[str]:
        """Return the names of the topics, except Kafka's internal topics."""
        from kafka_compat.testing import topics

        return topics.names(*self._internal_address())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> str:
        """Create a topic, wait until clients can use it, and return its name. A replication factor of -1
        means the broker's default. Raises TopicsFailed.
        """
        from kafka_compat.testing import topics

        topics.create(*self._internal_address(), name, partitions, replication_factor, config or {})
        return name

    def reset(self) -> None:
        """Delete all topics, groups and transactions, remove faults, and return to real time. Settings and
        producer IDs are kept. If the broker is stopped, start it first.
        """
        if not self.running:
            self.start()
        self.control.reset()

    # --- startup and shutdown

    def start(self) -> Self:
        """Start the broker with its existing data, if any, and wait until it serves. Raises BrokerFailed."""
        if self._security is not None:
            self._security.open()
            self._process.settings |= self._security.broker_settings(self._settings)
        elif self._has_internal_listener:
            self._process.settings.setdefault("listener.security.protocol.map", _plaintext(CLIENT, INTERNAL))
            self._process.settings["inter.broker.listener.name"] = INTERNAL
        if "listeners" not in self._process.settings:
            self._process.settings |= self._listener_settings()
        ready = self._process.start(self._start_timeout_s)
        self._brokers = ready["brokers"]
        self._control = Control(ready["http"]) if ready["http"] else None
        self._keep_ports()
        return self

    def _listener_settings(self) -> dict[str, object]:
        hosts = dict.fromkeys([CLIENT, INTERNAL] if self._has_internal_listener else [PLAINTEXT], _HOST)
        if self._containers:
            hosts[CONTAINERS] = "0.0.0.0"
        ports = dict(zip(hosts, self._first_ports(len(hosts)), strict=True))
        found: dict[str, object] = {
            "listeners": ",".join(f"{name}://{host}:{ports[name]}" for name, host in hosts.items())
        }
        if self._containers:
            found["listener.security.protocol.map"] = _plaintext(*hosts)
            found["advertised.listeners"] = f"{CONTAINERS}://{self._container_host}:{ports[CONTAINERS]}"
        return found

    @cached_property
    def _container_host(self) -> str:
        if isinstance(self._containers, str):
            return self._containers
        from kafka_compat.testing.container_host import container_host

        return container_host()

    def _keep_ports(self) -> None:
        """Use the current ports at the next start, because clients know them."""
        self._process.settings["listeners"] = ",".join(
            f"{name}://{at['host']}:{at['port']}" for name, at in self._brokers[0]["listeners"].items()
        )

    def stop(self) -> None:
        """Stop the broker gracefully (SIGTERM), and keep its data for the next start. Raises BrokerFailed."""
        self._process.stop()

    def kill(self) -> None:
        """Kill the broker's process (`kill -9`), and keep its data for the next start."""
        self._process.kill()

    def pause(self) -> None:
        """Pause the broker's process (SIGSTOP), including its control API, until `resume` is called."""
        self._process.child.send_signal(SIGSTOP)

    def resume(self) -> None:
        """Resume the broker's process (SIGCONT)."""
        self._process.child.send_signal(SIGCONT)

    def restart(self) -> None:
        """Stop the broker gracefully, and start it. Raises BrokerFailed."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the broker's process, and delete its data."""
        self._process.end()
        if self._security is not None:
            self._security.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await _in_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_thread(self.close)


class KafkaCluster(KafkaBroker):
    """Several brokers in one process, with replication and leader elections. Broker IDs start at 1."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        """`brokers` is the number of brokers. For the other parameters, see KafkaBroker."""
        self._count = brokers
        replicated = {"default.replication.factor": min(brokers, 3)}
        super().__init__({**replicated, **(settings or {})}, **options)

    def _arguments(self) -> list[str]:
        return ["--brokers", str(self._count)]

    def _first_ports(self, listeners: int) -> list[int]:
        """Return the first of consecutive free ports of each listener for all brokers. The next start uses
        the same ports.
        """
        first = adjacent_ports(self._count * listeners)
        return [first + self._count * number for number in range(listeners)]
