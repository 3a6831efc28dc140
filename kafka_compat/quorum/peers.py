"""Requests of a node to the other nodes of the quorum: addresses, connections, and events of responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.values import NO_NODE
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.quorum import requests
from kafka_compat.quorum.batches import read_fetched
from kafka_compat.quorum.peer_connections import Done, Lane, NotSupported, PeerConnections, is_refused
from kafka_compat.quorum.requests import VERSIONS, Local, Rejected
from kafka_compat.storage.errors import StorageError
from kafka_compat.tasks import settle

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.values import VoterSet
    from kafka_compat.security.broker_security import BrokerSecurity

log = logging.getLogger(__name__)

Address = tuple[str, int]
Sent = effects.SendVote | effects.SendBeginQuorumEpoch | effects.SendEndQuorumEpoch | effects.SendFetch
_NAMED_MAX: Final = 100
"""Number of leaders whose addresses are kept, because requests of strangers may name any number of them."""
_REPEATED_LOG_S: Final = 10.0
"""Interval in seconds between two log lines about the same problem with a node."""


class Peers:
    """The other nodes, by node ID. Every request ends with exactly one event, which is passed to `handle`."""

    def __init__(
        self,
        local: Local,
        bootstrap: Sequence[Address],
        listeners: Sequence[str],
        request_timeout_ms: int,
        security: Callable[[], BrokerSecurity],
        handle: Callable[[events.Event], None],
    ) -> None:
        """`bootstrap` are controller.quorum.bootstrap.servers. `listeners` are the names of controller
        listeners, in the order in which a node's addresses are tried.
        """
        self._local = local
        self._bootstrap = [address for address in bootstrap if address not in local.endpoints.values()]
        self._next_bootstrap = 0
        self._listeners = listeners
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._handle = handle
        self._voters: dict[int, Address] = {}
        self._named: dict[int, Address] = {}
        """Addresses of leaders that requests and responses named."""
        self._connections: dict[Address, PeerConnections] = {}
        self._fetching: dict[Address, int] = {}
        """Number of fetches without a response, by address."""
        self._logged: dict[tuple[Address, str], float] = {}
        self._closed = False

    # --- addresses

    def set_voters(self, voters: VoterSet) -> None:
        """Use the addresses of the present voters."""
        self._voters = {
            node_id: address
            for node_id, voter in voters.items()
            if (address := self._choice(voter.endpoints)) is not None
        }

    def learn(self, node_id: int, address: Address) -> None:
        """Record a leader's address that a request or a response contains."""
        if node_id >= 0 and node_id != self._local.key.node_id:
            self._named.pop(node_id, None)
            self._named[node_id] = address
            if len(self._named) > _NAMED_MAX:
                del self._named[next(iter(self._named))]

    def learn_endpoints(self, node_id: int, endpoints: requests.Endpoints) -> None:
        """Record the addresses that a leader's request contains."""
        address = self._choice(endpoints)
        if address is not None:
            self.learn(node_id, address)

    def _choice(self, endpoints: requests.Endpoints) -> Address | None:
        for name in self._listeners:
            if name in endpoints:
                return endpoints[name]
        return next(iter(endpoints.values()), None)

    def address_of(self, node_id: int) -> Address | None:
        """Return a node's address, or None if it is unknown."""
        if node_id == self._local.key.node_id:
            return self._choice(self._local.endpoints)
        return self._voters.get(node_id) or self._named.get(node_id)

    def _connections_to(self, address: Address) -> PeerConnections:
        connections = self._connections.get(address)
        if connections is None:
            connections = self._connections[address] = PeerConnections(
                *address,
                f"quorum-{self._local.key.node_id}",
                self._request_timeout_ms,
                self._security(),
            )
        return connections

    # --- Raft's requests

    def perform(self, sent: Sent) -> None:
        """Send the request of an effect. Its event is never handled within this call."""
        if isinstance(sent, effects.SendFetch):
            self._fetch(sent)
            return
        make: Callable[[int], Any]
        read: Callable[[Any], events.Event]
        if isinstance(sent, effects.SendVote):
            key, read = ApiKey.VOTE, partial(requests.vote_answered, sent)
            make = partial(requests.vote_request, self._local, sent)
        else:
            read = partial(requests.epoch_answered, sent)
            if isinstance(sent, effects.SendBeginQuorumEpoch):
                key, make = ApiKey.BEGIN_QUORUM_EPOCH, _always(requests.begin_request(self._local, sent))
            else:
                key, make = ApiKey.END_QUORUM_EPOCH, _always(requests.end_request(self._local, sent))
        address = self.address_of(sent.node_id)
        if address is None:
            self._fail_soon(sent)
            return
        versions = VERSIONS[key]
        if isinstance(sent, effects.SendVote) and sent.pre_vote:
            versions = (requests.FIRST_VERSION_WITH_PRE_VOTE, versions[1])
        done = partial(self._answered, sent, address, read)
        self._connections_to(address).send(Lane.CONTROL, key, versions, make, done)

    def _fetch(self, sent: effects.SendFetch) -> None:
        address: Address | None
        if sent.node_id == NO_NODE:
            address = None
            if self._bootstrap:
                address = self._bootstrap[self._next_bootstrap % len(self._bootstrap)]
                self._next_bootstrap += 1
        else:
            address = self.address_of(sent.node_id)
        if address is None:
            self._fail_soon(sent)
            return
        if self._fetching.get(address, 0):
            # The response to the earlier fetch would come first, and may never come: use a new connection.
            self._connections_to(address).drop(Lane.FETCH)
        self._fetching[address] = self._fetching.get(address, 0) + 1

        def done(response: Any) -> None:
            if self._fetching[address] == 1:
                del self._fetching[address]
            else:
                self._fetching[address] -= 1
            self._answered(sent, address, read, response)

        def read(response: Any) -> events.Event:
            partition = requests.fetched_partition(response)
            records = partition.records
            # Copy the records, because the response's bytes are valid only until this function returns.
            data = bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b""
            fetched = read_fetched(data, sent.offset)
            return requests.fetch_answered(sent, partition, fetched.batches, fetched.data)

        request = requests.fetch_request(self._local, sent)
        self._connections_to(address).send(
            Lane.FETCH, ApiKey.FETCH, VERSIONS[ApiKey.FETCH], _always(request), done
        )

    def _answered(
        self, sent: Sent, address: Address, read: Callable[[Any], events.Event], response: Any
    ) -> None:
        if self._closed:
            return
        if isinstance(response, NotSupported) and isinstance(sent, effects.SendVote):
            error = RaftError.UNSUPPORTED_VERSION
            self._handle(
                events.VoteAnswered(
                    sent.correlation_id, sent.node_id, error, -1, NO_NODE, False, sent.pre_vote
                )
            )
            return
        if isinstance(response, Exception):
            self._failed(sent, address, response)
            return
        for node_id, named in requests.named_leaders(response).items():
            self.learn(node_id, named)
        try:
            event = read(response)
        except (Rejected, StorageError) as error:
            self._failed(sent, address, error)
            return
        self._handle(event)

    def _failed(self, sent: Sent, address: Address, error: Exception) -> None:
        self._complain(address, f"{type(sent).__name__.removeprefix('Send')} failed: {error}")
        self._handle(events.RequestFailed(sent.correlation_id, sent.node_id, is_refused(error)))

    def _complain(self, address: Address, problem: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._logged.get((address, problem), -_REPEATED_LOG_S) >= _REPEATED_LOG_S:
            if len(self._logged) > 100:
                self._logged.clear()
            self._logged[address, problem] = now_s
            log.info("Quorum node %s:%d: %s", *address, problem)

    def _fail_soon(self, sent: Sent) -> None:
        def fail() -> None:
            if not self._closed:
                self._handle(events.RequestFailed(sent.correlation_id, sent.node_id, False))

        asyncio.get_running_loop().call_soon(fail)

    # --- other requests

    def send(self, node_id: int, lane: Lane, api_key: ApiKey, request: Any, done: Done) -> None:
        """Send a request to a node. `done` is called later, with the response or an exception."""
        address = self.address_of(node_id)
        if address is None:
            problem = ConnectionError(f"the address of node {node_id} is unknown")
            asyncio.get_running_loop().call_soon(done, problem)
            return
        self._connections_to(address).send(lane, api_key, VERSIONS[api_key], _always(request), done)

    async def ask(self, node_id: int, api_key: ApiKey, request: Any, lane: Lane = Lane.CONTROL) -> Any:
        """Send a request to a node, and return the response. Raises ConnectionError, MalformedRequest or
        NotSupported.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.send(node_id, lane, api_key, request, partial(settle, answer))
        return await answer

    async def close(self) -> None:
        """Close all connections. No event is handled afterwards."""
        self._closed = True
        connections, self._connections = self._connections, {}
        for each in connections.values():
            await each.close()


def _always(request: Any) -> Callable[[int], Any]:
    """Return a function that returns the same request for all versions."""
    return lambda version: request
