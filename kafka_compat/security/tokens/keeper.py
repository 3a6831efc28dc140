"""Delegation tokens of the cluster, stored in the metadata store and cached in memory.

Rules
1. Logins and listings use the cached copy, which follows the store: see coordination/nodes/following.py.
2. A change and its notification are written together, on condition that the node has not changed since it
   was read. After a conflict, the node is read and the change is decided again. A renewal on one broker
   therefore cannot restore a token that was expired on another broker.
3. Credentials are derived from the ID and the brokers' secret key. They are computed once, in a thread, so
   that startup does not wait. If a token is used before that, its credential is computed immediately.
4. An unreadable node is ignored.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_compat.coordination.nodes.following import Following, Notices
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.security.principal import Principal, TokenHolder
from kafka_compat.security.sasl.scram import Found
from kafka_compat.security.scram_credential import MECHANISMS, Credential
from kafka_compat.security.tokens import delegation_token as model
from kafka_compat.security.tokens.delegation_token import Terms, Token
from kafka_compat.tasks import Background, Tasks, asked_for_all

log = logging.getLogger(__name__)

WRITES_MAX: Final = 11
"""Maximum number of attempts at a change while other brokers change the same token."""
NODE_BYTES_MAX: Final = 1_000_000
"""Maximum size of a node. ZooKeeper closes a connection that sends over 1 MB; other requests then fail."""
_READS_AT_ONCE: Final = 100
_NO_TOKEN: Final = "the token cannot be used"


class Issued(NamedTuple):
    """A token with its secret (`hmac`)."""

    token: Token
    hmac: bytes

    def __repr__(self) -> str:
        """Omit the secret, because the text may be logged."""
        return f"Issued({self.token!r})"


class _Known:
    """A token, the version of its node, its secret, and the credentials derived from the secret."""

    __slots__ = ("_credentials", "hmac", "token", "version")

    def __init__(self, token: Token, version: int, hmac: bytes) -> None:
        self.token = token
        self.version = version
        self.hmac = hmac
        self._credentials: dict[str, Credential] = {}

    def credential(self, mechanism: str) -> Credential:
        found = self._credentials.get(mechanism)
        if found is None:
            found = self._credentials[mechanism] = model.credential_of(self.hmac, mechanism)
        return found

    def prepare(self) -> None:
        """Derive the credentials that have not been derived yet. May run in any thread."""
        for mechanism in MECHANISMS:
            self.credential(mechanism)


class Keeper:
    """The tokens in the metadata store: a cached copy, and operations that change them."""

    def __init__(
        self, store: MetadataStore, secret_key: str, terms: Terms, tasks: Tasks, now_ms: Callable[[], int]
    ) -> None:
        """`secret_key` is delegation.token.secret.key, which all brokers share."""
        self._store = store
        self._secret_key = secret_key.encode()
        self._terms = terms
        self._tasks = tasks
        self._now_ms = now_ms
        self._malformed = MalformedNodes()
        self._known: dict[str, _Known] = {}
        self._ids: dict[bytes, str] = {}
        """Maps secrets to token IDs, because clients identify tokens by secret."""
        self._unprepared: list[_Known] = []
        """Tokens read from the store, whose credentials have not been computed yet."""
        self._preparing: Background | None = None
        self._lock = asyncio.Lock()
        self._following = Following(
            "the delegation tokens",
            store,
            model.PERSISTENT_PATHS,
            self._read_all,
            [Notices(model.CHANGES, model.CHANGE_PREFIX, self._hear, now_ms)],
            tasks,
        )

    async def start(self) -> None:
        """Read all tokens, and follow later changes. Raises MetadataStoreError if they cannot be read."""
        await self._following.start()

    def find(self, token_id: str, mechanism: str) -> Found | None:
        """Return the SCRAM credential and the owner of a token, or None if the token is unknown."""
        known = self._known.get(token_id)
        if known is None:
            return None
        token = known.token
        return Found(known.credential(mechanism), TokenHolder("User", token.owner.name), token.expires_ms)

    def issued(self) -> list[Issued]:
        """Return all tokens, including expired tokens that have not been removed yet."""
        return [Issued(known.token, known.hmac) for known in self._known.values()]

    # The following methods raise KafkaError if a change is rejected or cannot be stored.

    async def create(
        self, owner: Principal, requester: Principal, renewers: tuple[Principal, ...], lifetime_ms: int
    ) -> Issued:
        """Create a token (see `delegation_token.issued`). A token with too many renewers is rejected."""
        token = model.issued(owner, requester, renewers, lifetime_ms, self._terms, self._now_ms())
        path, data = model.path_of(token.token_id), model.encode_token(token)
        if len(data) > NODE_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        with store_errors_mapped():
            async with self._lock:
                await self._write_new(token.token_id, stores.Create(path, data))
                known = self._know(token, 0)
        await asyncio.to_thread(known.prepare)
        log.info("Created delegation token %s for %s", token.token_id, owner)
        return Issued(token, known.hmac)

    async def renew(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        """Renew the token with this secret, and return its new expiry time."""
        token = await self._change(
            hmac, lambda token: model.renewed(token, principal, period_ms, self._terms, self._now_ms())
        )
        assert token is not None
        log.info("Renewed delegation token %s of %s", token.token_id, token.owner)
        return token.expires_ms

    async def expire(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        """Set the expiry of the token with this secret, and return the new expiry time."""
        token = await self._change(
            hmac, lambda token: model.expiring(token, principal, period_ms, self._now_ms())
        )
        if token is None:
            return self._now_ms()
        log.info("Changed the expiry time of delegation token %s of %s", token.token_id, token.owner)
        return token.expires_ms

    async def _change(self, hmac: bytes, change: Callable[[Token], Token | None]) -> Token | None:
        with store_errors_mapped():
            async with self._lock:
                for _ in range(WRITES_MAX):
                    known = self._known.get(self._ids.get(hmac, ""))
                    if known is None:
                        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
                    wanted = change(known.token)
                    if await self._replace(known, wanted):
                        return wanted
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{WRITES_MAX} concurrent changes of the token")

    async def _replace(self, known: _Known, wanted: Token | None) -> bool:
        """Replace a token. If another broker has changed it, load the changed token and return False."""
        token_id = known.token.token_id
        path = model.path_of(token_id)
        operation: stores.Operation = stores.Delete(path, known.version)
        if wanted is not None:
            operation = stores.SetData(path, model.encode_token(wanted), known.version)
        try:
            version = await self._write(token_id, operation)
        except (stores.BadVersion, stores.NoNode):
            await self._reread(token_id)
            return False
        except stores.ConnectionLost:
            await self._reread(token_id)
            known_now = self._known.get(token_id)
            return (known_now.token if known_now else None) == wanted
        if wanted is None:
            self._forget(token_id)
            log.info("Removed delegation token %s of %s", token_id, known.token.owner)
        else:
            self._know(wanted, version)
        return True

    async def _write_new(self, token_id: str, creation: stores.Create) -> None:
        while True:
            try:
                await self._write(token_id, creation)
                return
            except stores.ConnectionLost:
                continue
            except stores.NodeExists:
                # Token IDs are unique, so an earlier attempt, whose response was lost, created the node.
                return

    async def _write(self, token_id: str, operation: stores.Operation) -> int:
        """Write a token's node and a change notification, and return the node's new version."""
        notice = f"{model.CHANGES}/{model.CHANGE_PREFIX}"
        created_notice = stores.Create(notice, model.encode_change(token_id), sequential=True)
        try:
            results = await self._store.multi([operation, created_notice])
        except stores.TransactionFailed as failed:
            raise failed.take_cause() from None
        return results[0].version if isinstance(results[0], stores.Stat) else 0

    async def keep_removing(self, is_controller: Callable[[], bool], interval_s: float) -> None:
        """Remove expired tokens periodically, while this broker is the controller."""
        while True:
            if is_controller():
                await self._remove_expired()
            await asyncio.sleep(interval_s)

    async def _remove_expired(self) -> None:
        for known in list(self._known.values()):
            if not known.token.has_expired(self._now_ms()):
                continue
            try:
                async with self._lock:
                    if self._known.get(known.token.token_id) is known:
                        await self._replace(known, None)
            except stores.MetadataStoreError as error:
                log.info("Could not remove expired delegation tokens: %r; retrying later", error)
                return

    async def _read_all(self) -> None:
        async with self._lock:
            found = await self._store.children(model.TOKENS)
            await asked_for_all(found, self._reread, _READS_AT_ONCE)
            for gone in self._known.keys() - set(found):
                self._forget(gone)
        self._prepare_soon()

    async def _hear(self, path: str, data: bytes | None) -> None:
        try:
            token_id = model.decode_change(path, data)
        except MalformedNode as error:
            self._malformed.report_notice(error)
            return
        async with self._lock:
            await self._reread(token_id)
        self._prepare_soon()

    async def _reread(self, token_id: str) -> None:
        try:
            data, stat = await self._store.get(model.path_of(token_id))
        except stores.NoNode:
            self._forget(token_id)
            return
        is_new = token_id not in self._known
        try:
            known = self._know(model.decode_token(token_id, data), stat.version)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, _NO_TOKEN)
            self._forget(token_id)
            return
        if is_new:
            self._unprepared.append(known)

    def _know(self, token: Token, version: int) -> _Known:
        known = self._known.get(token.token_id)
        if known is None:
            hmac = model.hmac_of(token.token_id, self._secret_key)
            known = self._known[token.token_id] = _Known(token, version, hmac)
            self._ids[hmac] = token.token_id
        else:
            known.token, known.version = token, version
        return known

    def _forget(self, token_id: str) -> None:
        known = self._known.pop(token_id, None)
        if known is not None:
            del self._ids[known.hmac]

    def _prepare_soon(self) -> None:
        is_busy = self._preparing is not None and not self._preparing.done
        if self._unprepared and not is_busy and not self._tasks.closed:
            self._preparing = self._tasks.spawn("creating credentials of delegation tokens", self._prepare)

    async def _prepare(self) -> None:
        while self._unprepared:
            await asyncio.to_thread(self._unprepared.pop().prepare)
