"""The settings and the shared metadata store of brokers that one command starts (--brokers, --processes).

The first broker uses the configured ports, and the others use the following ports (port 0: any free ports).
The directories are `broker-1`, `broker-2`, … in each of log.dirs, next to the metadata journal.
"""

import os
from collections.abc import Iterable, Sequence

from kafka_compat.cli.http_services import LISTENER
from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.config.listeners import PUBLISHED
from kafka_compat.config.quorum_names import is_of_quorum
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME, CorruptJournal, Journal
from kafka_compat.errors import StartupError
from kafka_compat.storage.directories.checkpoints import META_PROPERTIES
from kafka_compat.storage.directories.directory_claim import DirectoryClaim
from kafka_compat.storage.directories.directory_names import RETURNING
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.filesystem import RealFilesystem

_REPLICATED = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
_OF_ITS_OWN = ("node.id", "log.dir", "advertised.listeners", PUBLISHED)
"""Settings that brokers do not inherit: they are set individually, or under a different name."""


def broker_configs(config: BrokerConfig, count: int, first_id: int = 1) -> list[BrokerConfig]:
    """Return the configuration of each broker. Raises StartupError if a setting is invalid, or if log.dirs
    belong to a single broker, whose records these brokers would not find.
    """
    for directory in config.log_dirs:
        if os.path.exists(os.path.join(directory, META_PROPERTIES)):
            raise StartupError(
                f"log.dirs={directory} belongs to a single broker: start it without --processes and "
                "--brokers, as before, or choose other log.dirs"
            )
    try:
        return [
            BrokerConfig.from_properties(broker_settings(config, number, count, first_id))
            for number in range(1, count + 1)
        ]
    except ConfigError as error:
        expected = f" ({error.expected})" if error.expected else ""
        raise StartupError(f"{error}{expected}") from error


def broker_settings(config: BrokerConfig, number: int, count: int, first_id: int = 1) -> dict[str, str]:
    """Return the settings for broker `number` of `count`. Raises ConfigError if listeners' ports overlap."""
    _check_ports(config.listeners, count)
    broker_id = first_id + number - 1
    folders = ",".join(os.path.join(folder, f"broker-{broker_id}") for folder in config.log_dirs)
    settings = {
        # The brokers share a metadata store: they need no quorum.
        **{
            name: value
            for name, value in config.static.items()
            if name not in _OF_ITS_OWN and not is_of_quorum(name)
        },
        "broker.id": str(broker_id),
        "listeners": listeners_text(
            (item.name, item.host, item.port + number - 1 if item.port else 0) for item in config.listeners
        ),
        "log.dirs": folders,
    }
    public = (("advertised.listeners", config.advertised_listeners), (PUBLISHED, config.published_listeners))
    for setting, addresses in public:
        if addresses:
            settings[setting] = listeners_text(
                (name, host, port + number - 1) for name, (host, port) in addresses.items()
            )
    if not config.str("zookeeper.connect"):
        # Lower the replication factors, because no other brokers will join.
        settings |= {name: str(min(config.int(name), count)) for name in _REPLICATED}
    return settings


def http_listeners(config: BrokerConfig, count: int) -> list[str | None]:
    """Return the HTTP listener of each broker process. The first process uses the configured port, and the
    others use the following ports. Raises StartupError if these ports overlap with other listeners' ports.
    """
    given = config.str(LISTENER)
    if not given:
        return [None] * count
    from kafka_compat.http.listener import address_of

    host, first = address_of(given)
    met = _first_meeting([*((item.name, item.port) for item in config.listeners), (LISTENER, first)], count)
    if met is not None:
        _, other, port = met
        raise StartupError(
            f"{LISTENER}={given}: {count} processes need {count} consecutive ports, which overlap with "
            f"those of {other} at {port} (expected ports at least {count} apart)"
        )
    return [f"http://{address(host, first + number if first else 0)}" for number in range(count)]


def listeners_text(listeners: Iterable[tuple[str, str, int]]) -> str:
    """Format names, hosts and ports as a value of `listeners`."""
    return ",".join(f"{name}://{address(host, port)}" for name, host, port in listeners)


def address(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_ports(listeners: Sequence[Listener], count: int) -> None:
    met = _first_meeting([(item.name, item.port) for item in listeners], count)
    if met is not None:
        name, other, port = met
        raise ConfigError(
            "listeners",
            listeners_text((each.name, each.host, each.port) for each in listeners),
            f"{count} brokers need {count} consecutive ports for each listener, and those of {name} and "
            f"{other} overlap at {port}",
            f"expected ports at least {count} apart",
        )


def _first_meeting(first_ports: Iterable[tuple[str, int]], count: int) -> tuple[str, str, int] | None:
    """Find the first conflict between listeners that each use `count` consecutive ports, starting at their
    first port (0: any free ports). Return (listener, listener that already uses the port, port), or None if
    there is no conflict.
    """
    taken: dict[int, str] = {}
    for name, first in first_ports:
        for port in range(first, first + count) if first else ():
            other = taken.setdefault(port, name)
            if other != name:
                return name, other, port
    return None


class Tree:
    """The metadata store that brokers without ZooKeeper share, in a directory that this object locks."""

    def __init__(
        self, config: BrokerConfig, brokers: Sequence[Sequence[str]] = (), *, syncs: bool = True
    ) -> None:
        """Complete an interrupted restore of a snapshot, and open the store. `brokers` contains the log
        directories of each of this process's brokers. Without `syncs`, changes of the store survive the
        process, but not a crash of the machine. Raises StartupError if the store is locked or corrupt.
        """
        self._directory = config.log_dirs[0]
        self._brokers = brokers
        self._syncs = syncs
        self._claim = DirectoryClaim(self._directory, RealFilesystem())
        try:
            self._claim.lock()
        except (StorageError, OSError) as error:
            raise StartupError(str(error)) from error
        try:
            if os.path.exists(os.path.join(self._directory, RETURNING)):
                from kafka_compat.storage.directories import saved_states

                saved_states.finish_returning_together(self._directory, JOURNAL_NAME, brokers)
            self.store = self._open()
        except (OSError, CorruptJournal) as error:
            self._claim.unlock()
            path = os.path.join(self._directory, JOURNAL_NAME)
            raise StartupError(f"cannot read the metadata journal {path}: {error}") from error

    def _open(self) -> EmbeddedMetadataStore:
        path = os.path.join(self._directory, JOURNAL_NAME)
        return EmbeddedMetadataStore(path, journal=Journal(path, syncs=self._syncs))

    def snapshot(self) -> dict[str, bytes]:
        """Return the contents of the metadata files, by name."""
        return {JOURNAL_NAME: self.store.snapshot()}

    async def return_to(self, name: str) -> None:
        """Restore the log directories and the metadata from the snapshot `name`. The brokers must be
        suspended. Raises OSError or CorruptJournal if this fails.
        """
        from kafka_compat.storage.directories import saved_states

        await self.store.close()
        saved_states.return_together(self._directory, JOURNAL_NAME, self._brokers, name)
        self.store = self._open()

    async def close(self) -> None:
        """Close the store with all sessions, and unlock the directory."""
        await self.store.close()
        self._claim.unlock()
