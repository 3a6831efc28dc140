"""The quorum node of a process, with its controller listeners, its store and its connections.

A broker of a cluster with a metadata quorum runs it through its membership; a process that is only a
controller runs nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.broker.addresses import default_address
from kafka_compat.broker.controller_listener import ControllerListener
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.clock import SystemClock
from kafka_compat.config.quorum import is_loopback
from kafka_compat.coordination.raft.values import NO_NODE, ReplicaKey, Voter
from kafka_compat.coordination.replicated_store.store import ReplicatedStore
from kafka_compat.errors import StartupError, StoppedWaiting
from kafka_compat.lazy import Lazy
from kafka_compat.quorum import metadata_directory
from kafka_compat.quorum.alone import is_first_voter
from kafka_compat.quorum.opening import open_node
from kafka_compat.quorum.peers import Peers
from kafka_compat.security.broker_security import NONE
from kafka_compat.storage.directories.directory_claim import DirectoryClaim, why_unusable
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.config import BrokerConfig
    from kafka_compat.config.quorum import QuorumConfig
    from kafka_compat.coordination.replicated_store.metadata_log import LogApplication
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.quorum.metadata_directory import NodeDirectories
    from kafka_compat.quorum.node import QuorumNode
    from kafka_compat.quorum.requests import Endpoints
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.broker_security import BrokerSecurity
    from kafka_compat.storage.clock import Clock

log = logging.getLogger(__name__)

_REMIND_S: Final = 10.0
"""Interval in seconds between log lines while the node waits for a leader."""


class QuorumProcess:
    """Implements QuorumParticipant. After `stop`, `start` may be called again."""

    node: QuorumNode

    def __init__(self, config: BrokerConfig, hooks: BrokerHooks | None = None) -> None:
        hooks = hooks or BrokerHooks()
        assert config.quorum is not None
        self.on_fatal: Callable[[], None] = lambda: None
        """Function that is called after a fatal error of the node. It must stop the process."""
        self._config = config
        self._quorum: QuorumConfig = config.quorum
        self._clock: Clock = hooks.clock or SystemClock()
        self._filesystem = hooks.filesystem or RealFilesystem(syncs=hooks.syncs)
        self._tasks = Tasks(self._fail)
        self._listener: ControllerListener | None = None
        self._store: ReplicatedStore | None = None
        self._claim: DirectoryClaim | None = None
        self._is_running = False
        self._stop_waiting = asyncio.Event()

    def _fail(self) -> None:
        self.on_fatal()

    @property
    def store(self) -> ReplicatedStore:
        """The store of this process, after `start`."""
        assert self._store is not None
        return self._store

    @property
    def listener(self) -> ControllerListener | None:
        """The controller listeners, or None if this process is not a controller."""
        return self._listener

    async def start(self) -> None:
        """Start the node and its listeners. Raises StartupError."""
        quorum = self._quorum
        self._tasks = Tasks(self._fail)
        if quorum.is_controller:
            self._listener = ControllerListener(self._config, self._clock, quorum.listeners)
        node = self.node = self._open_node()
        node.on_fatal = self._fail
        self._is_running = True
        security = await self._security()
        application = self._new_application(node)
        peers = Peers(
            node.local,
            quorum.bootstrap_servers,
            [quorum.listener_name],
            quorum.request_timeout_ms,
            lambda: security,
            node.handle,
        )
        node.start(peers, application)
        if self._listener is not None:
            await self._listener.start(node, self._first_authorizer())

    def _new_application(self, node: QuorumNode) -> LogApplication:
        store = self._store = ReplicatedStore(node, self._clock.now_ms)
        return store

    def _open_node(self) -> QuorumNode:
        quorum, files = self._quorum, self._filesystem
        directory = quorum.metadata_log_dir
        try:
            self._lock()
            found = metadata_directory.check_directories(
                self._config.log_dirs if quorum.is_broker else [directory],
                directory,
                quorum.node_id,
                self._config.cluster_id,
                files,
            )
            cluster_id = found.cluster_id or implied_cluster_id(quorum)
            if directory in found.unformatted and is_first_voter(quorum):
                found = self._begin_log(found, cluster_id)
            ids = metadata_directory.prepare(found, quorum.node_id, cluster_id, files)
            return open_node(
                quorum,
                cluster_id,
                ids[directory],
                self._endpoints(),
                self._clock,
                files,
                asyncio.get_running_loop(),
            )
        except StorageError as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            reason = why_unusable(directory, error)
            raise StartupError(f"cannot use {directory} for the metadata log: {reason}") from error

    def _begin_log(self, found: NodeDirectories, cluster_id: str) -> NodeDirectories:
        """Format the directory of the metadata log with this node as the only voter."""
        quorum, files, directory = self._quorum, self._filesystem, self._quorum.metadata_log_dir
        key = ReplicaKey(quorum.node_id, metadata_directory.new_directory_id())
        voters = {quorum.node_id: Voter(key, self._endpoints())}
        metadata_directory.write_bootstrap(directory, voters, self._clock.now_ms(), files)
        properties = metadata_directory.write_properties(
            directory, quorum.node_id, cluster_id, key.directory_id, files
        )
        return found._replace(
            properties={**found.properties, directory: properties},
            unformatted=[each for each in found.unformatted if each != directory],
        )

    def _lock(self) -> None:
        """Lock the directory of the metadata log, unless it is one of the broker's log directories."""
        quorum = self._quorum
        if not (quorum.is_broker and quorum.metadata_log_dir in self._config.log_dirs):
            self._claim = DirectoryClaim(quorum.metadata_log_dir, self._filesystem)
            self._claim.lock()

    def _endpoints(self) -> Endpoints:
        """Return the addresses at which other nodes reach this one."""
        quorum, listener = self._quorum, self._listener
        if listener is None:
            return {}
        found = {}
        for name, (host, port) in listener.bound.items():
            address = quorum.advertised.get(name)
            if address is None and name == quorum.listener_name:
                address = quorum.voters.get(quorum.node_id)
                servers = quorum.bootstrap_servers
                if address is None and is_first_voter(quorum) and not is_loopback(servers[0][0]):
                    # In contrast to the host name of a container, this name also applies to the next one.
                    address = servers[0]
            if address is None:
                address = default_address(host, port)
            found[name] = address
        return found

    async def _security(self) -> BrokerSecurity:
        """Return the security of connections to controllers."""
        quorum = self._quorum
        entrances = None if self._listener is None else self._listener.entrances
        if quorum.security_protocol == "PLAINTEXT" and entrances is None:
            return NONE
        from kafka_compat.broker.entrances import Entrances
        from kafka_compat.network.server import Server
        from kafka_compat.security.broker_settings import Login

        if entrances is None:
            from kafka_compat.broker.connection_limits import connection_rates, limits

            server = Server(limits(self._config, ()), Lazy(partial(connection_rates, self._config)))
            entrances = Entrances(self._config, self._clock, server, ())
        security = entrances.security_of(Login.to_controllers(quorum.listener_name, quorum.security_protocol))
        await entrances.open_without_store(self._tasks)
        return security

    def _first_authorizer(self) -> Authorizer | None:
        """Return the authorizer until the ACLs can be read: it allows only super users everything."""
        settings = self._config.authorizer
        if settings is None:
            return None
        from kafka_compat.security.acls.authorizer import AclAuthorizer
        from kafka_compat.security.acls.rules import Rules

        return AclAuthorizer(Rules.configured(settings._replace(allow_if_no_acl=False)))

    async def connect(self) -> MetadataStore:
        """Open a session with the store, as soon as the quorum has a leader."""
        assert self._store is not None
        opening = asyncio.ensure_future(self._store.connect(self._quorum.session_timeout_ms))
        stopping = asyncio.ensure_future(self._stop_waiting.wait())
        try:
            while not opening.done():
                await asyncio.wait(
                    [opening, stopping], timeout=_REMIND_S, return_when=asyncio.FIRST_COMPLETED
                )
                if stopping.done() and not opening.done():
                    raise StoppedWaiting("stopped while waiting for a leader of the metadata quorum")
                if not opening.done():
                    self._remind()
            return await opening
        finally:
            stopping.cancel()
            if not opening.done():
                opening.cancel()
                with suppress(asyncio.CancelledError):
                    await opening

    def _remind(self) -> None:
        machine = self.node.machine
        if machine.leader_id == NO_NODE:
            voters = ", ".join(map(str, sorted(machine.voters))) or "unknown"
            log.warning(
                "Waiting for a leader of the metadata quorum: a majority of the voters (%s) must run and "
                "reach each other. Check controller.quorum.voters, and the other nodes' logs%s",
                voters,
                self._advice(),
            )
        else:
            log.warning("Waiting for a session from node %d, the leader of the quorum", machine.leader_id)

    def _advice(self) -> str:
        """Return what to do if the only voter may run standalone, or an empty string."""
        addresses = [*self._quorum.voters.values()] or [*self._quorum.bootstrap_servers]
        if self._quorum.is_controller or len(addresses) != 1 or not is_loopback(addresses[0][0]):
            return ""
        host, port = addresses[0]
        return (
            f". If the node at {host}:{port} has both process.roles, it runs standalone, because "
            f"{host} is an address of the loopback interface: name it {socket.gethostname()}:{port} on all "
            "nodes, and give it empty log.dirs"
        )

    def has_leader(self) -> bool:
        """Return whether this node hears a leader of the quorum."""
        return self.node.machine.hears_leader

    def stop_waiting(self) -> None:
        """Let `connect` fail instead of waiting for a leader."""
        self._stop_waiting.set()

    async def serve(self, context: BrokerContext, authorizer: Authorizer | None) -> None:
        """Use the users and the ACLs of the cluster for the controller listeners."""
        if self._listener is None:
            return
        self._listener.set_authorizer(authorizer)
        if self._listener.entrances is not None:
            await self._listener.entrances.load_users(context.store, context.entity_changes)

    def follow_security(self) -> None:
        """Read the users and ACLs from the store in the background. Only for a process without a broker."""
        assert self._listener is not None
        if self._config.authorizer is None and self._listener.entrances is None:
            return
        from kafka_compat.broker.controller_security import ControllerSecurity

        security = ControllerSecurity(self._config, self._clock, self._listener, self.connect)
        self._tasks.spawn("reading users and ACLs", security.follow, restarts=True)

    async def stop(self) -> None:
        """Stop the node and its listeners. Repeated calls have no effect."""
        await self._tasks.close()
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._is_running:
            self._is_running = False
            await self.node.stop()
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.stop()
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.unlock()


def implied_cluster_id(quorum: QuorumConfig) -> str:
    """Return the ID of a cluster whose nodes were not formatted and have no CLUSTER_ID: it depends only on
    the voters, so that all nodes have the same ID.
    """
    named = sorted(f"{node_id}@{host}:{port}" for node_id, (host, port) in quorum.voters.items())
    named = named or sorted(f"{host}:{port}" for host, port in quorum.bootstrap_servers)
    digest = hashlib.sha256(",".join(named).encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
