"""Shared metadata store of a cluster, in ZooKeeper or another process: sessions, cluster ID and broker ID."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal

from kafka_compat.cluster.broker_context import StoreConnection
from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.store_marker import MARKER, StoreState, read_marker
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, Stat, Watch
from kafka_compat.errors import StartupError
from kafka_compat.metadata.topic_nodes import new_id
from kafka_compat.storage.clock import Clock
from kafka_compat.tasks import CannotGoOn

if TYPE_CHECKING:
    from kafka_compat.cluster.quorum_participant import QuorumParticipant

ConnectStore = Callable[[], Awaitable[MetadataStore]]
"""A function that opens a session with the store, or raises MetadataStoreError if this fails."""


class StoreMoved(CannotGoOn):
    """Raised if the metadata of the cluster is in another store."""


async def refuse_moved(session: MetadataStore) -> None:
    """Raise StoreMoved if the store is not the store of record."""
    try:
        marker, _ = await read_marker(session)
    except MalformedNode as error:
        raise StoreMoved(str(error)) from error
    if marker is not None and marker.state is not StoreState.ACTIVE:
        raise StoreMoved(
            f"the metadata of the cluster is in another store, or is being moved ({MARKER} is "
            f"{marker.state.value}). If it is in the metadata quorum, remove zookeeper.connect; if it is in "
            "ZooKeeper, remove process.roles and set zookeeper.connect; during a migration, set "
            "zookeeper.metadata.migration.enable=true on all brokers"
        )


class CurrentSession(MetadataStore):
    """A store that delegates to `session`, the broker's current session. The session is replaced after it
    expires. Operations that must not continue in another session, such as a controller's writes, use the
    session itself.
    """

    def __init__(self, session: MetadataStore) -> None:
        self.session = session

    @property
    def session_id(self) -> int:
        return self.session.session_id

    @property
    def tree_id(self) -> str:
        return self.session.tree_id

    @property
    def state(self) -> stores.SessionState:
        return self.session.state

    def on_state(self, listener: stores.StateListener) -> None:
        self.session.on_state(listener)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        return await self.session.get(path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        return await self.session.exists(path, watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return await self.session.children(path, watch)

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | Stat | None]:
        return await self.session.multi(operations)

    async def close(self) -> None:
        await self.session.close()


class SharedStore:
    """The shared store of a cluster. `connect` opens the first session, and a new one after each expiry."""

    is_shared: Literal[True] = True
    participant: "QuorumParticipant | None" = None
    """The node of the metadata quorum in this process, or None if the store has no quorum."""

    def __init__(self, connect: ConnectStore) -> None:
        self._connect = connect
        self._session: CurrentSession | None = None

    async def connect(self) -> MetadataStore:
        """Open a session. Raises StoreMoved, MetadataStoreError, or the errors of the function passed."""
        session = await self._connect()
        try:
            await refuse_moved(session)
        except BaseException:
            await session.close()
            raise
        return session

    async def open(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> StoreConnection:
        try:
            store = self._session = CurrentSession(await self.connect())
            await store.ensure_all(znodes.PERSISTENT_PATHS)
            if not config.has_broker_id:
                await _generate_broker_id(store, config)
            cluster_id = await _cluster_id(store, stored_cluster_id)
        except (stores.LoginFailed, stores.NotAllowed, StoreMoved) as error:
            raise StartupError(str(error)) from error
        except ConfigError as error:
            raise StartupError(error.in_full) from error
        except (MetadataStoreError, ValueError) as error:
            problem = (
                f"{str(error).removesuffix('.')}. Without zookeeper.connect, the broker runs standalone."
            )
            raise StartupError(problem) from error
        return StoreConnection(store, cluster_id, may_lack_topics=False)

    def can_store_change(self) -> bool:
        """Return whether the store can be written, as far as this broker knows."""
        return True

    async def leave(self) -> None:
        """End the session and the registration. This precedes other shutdown work, because new leaders wait
        for registered replicas that recently caught up.
        """
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def close(self) -> None:
        """Do nothing, because `leave` has ended the session."""


async def _generate_broker_id(store: MetadataStore, config: BrokerConfig) -> None:
    """Generate a unique broker ID by writing to /brokers/seqid, whose version increases with each write. The
    broker stores the ID in meta.properties later.
    """
    if not config.bool("broker.id.generation.enable"):
        raise StartupError("broker.id is missing, and broker.id.generation.enable=false")
    stat = await store.set(znodes.BROKER_SEQUENCE, b"")
    config.adopt_broker_id(config.int("reserved.broker.max.id") + stat.version)


async def _cluster_id(store: MetadataStore, stored_id: str | None) -> str:
    try:
        data, _ = await store.get(znodes.CLUSTER_ID)
    except stores.NoNode:
        created = stored_id or new_id()
        await store.ensure(znodes.CLUSTER_ID.rpartition("/")[0])
        try:
            await store.create(znodes.CLUSTER_ID, znodes.encode_cluster_id(created))
        except stores.NodeExists:
            return await _cluster_id(store, stored_id)
        return created
    try:
        return znodes.decode_cluster_id(data)
    except MalformedNode as error:
        raise StartupError(str(error)) from error
