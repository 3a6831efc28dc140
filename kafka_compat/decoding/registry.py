"""Client of a schema registry with Confluent's API. A lookup takes at most `PATIENCE_S` seconds.

Schemas never change, so they are cached forever. If a lookup fails, the reason is returned instead of the
schema, and the ID is looked up again after `AGAIN_AFTER_S`. Until then, an unreachable registry is not
queried.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from kafka_compat.config import BrokerConfig
from kafka_compat.decoding.avro import AvroSchema
from kafka_compat.decoding.formats import JsonSchema, Schema
from kafka_compat.decoding.plain import NotSo
from kafka_compat.decoding.protobuf import ProtobufSchema
from kafka_compat.decoding.registry_api import (
    ACCEPT,
    SERIALIZED,
    basic_authorization,
    referenced,
    schema_path,
)
from kafka_compat.errors import StartupError
from kafka_compat.http_client import Place, Unreachable, ask, place

URL: Final = "kafka.compat.schema.registry.url"
USER: Final = "kafka.compat.schema.registry.basic.auth.user.info"
PATIENCE_S: Final = 2.0
AGAIN_AFTER_S: Final = 10.0
SCHEMAS_MAX: Final = 1000
"""Maximum number of cached schemas."""
ASKED_MAX: Final = 50
"""Maximum number of lookups per call, because records can contain any number of IDs."""
_AT_ONCE: Final = 8
_NOT_FOUND: Final = 404


class Registry:
    """A schema registry with its cached schemas."""

    def __init__(
        self, where: Place, user_info: str | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Create a client. `user_info` is user:password, and `now_s` is a monotonic clock."""
        self._where = where
        self._headers = {"Accept": ACCEPT, **({} if user_info is None else basic_authorization(user_info))}
        self._now_s = now_s
        self._known: dict[int, Schema] = {}
        self._refused: dict[int, tuple[float, str]] = {}
        self._away: tuple[float, str] | None = None
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def schemas(self, ids: Collection[int]) -> dict[int, Schema | str]:
        """Return, for each ID, the schema or the reason why it is unavailable."""
        asked = [each for each in sorted(ids) if each not in self._known and self._reason(each) is None]
        tasks = [asyncio.ensure_future(self._ask(each)) for each in asked[:ASKED_MAX]]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=PATIENCE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
                self._is_away(f"no response within {PATIENCE_S:.0f} s")
        found: dict[int, Schema | str] = {}
        for each in ids:
            known = self._known.get(each)
            reason = self._reason(each) or "its schema was not fetched, because too many schemas were needed"
            found[each] = reason if known is None else known
        return found

    def _reason(self, schema_id: int) -> str | None:
        now_s = self._now_s()
        for refused in (self._refused.get(schema_id), self._away):
            if refused is not None and now_s < refused[0]:
                return refused[1]
        return None

    def _is_away(self, why: str) -> None:
        self._away = (self._now_s() + AGAIN_AFTER_S, f"the schema registry: {why}")

    async def _ask(self, schema_id: int) -> None:
        try:
            async with self._places:
                schema = await self._schema(schema_id)
        except Unreachable as error:
            if error.status is None:
                self._is_away(str(error))
                return
            reason = f"the schema registry: {error}"
            if error.status == _NOT_FOUND:
                reason = f"the schema registry has no schema {schema_id}"
        except (NotSo, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"schema {schema_id}: {error}"
        else:
            if len(self._known) >= SCHEMAS_MAX:
                del self._known[next(iter(self._known))]
            self._known[schema_id] = schema
            self._refused.pop(schema_id, None)
            return
        if len(self._refused) >= SCHEMAS_MAX:
            del self._refused[next(iter(self._refused))]
        self._refused[schema_id] = (self._now_s() + AGAIN_AFTER_S, reason)

    async def _schema(self, schema_id: int) -> Schema:
        answer = await self._get(schema_path(schema_id))
        kind, text, named = answer.get("schemaType", "AVRO"), answer["schema"], answer.get("references", [])
        if kind == "JSON":
            return JsonSchema()
        if kind == "AVRO":
            references = await self._references(named, "")
            # Use a thread: the first AvroSchema imports fastavro, which would block the event loop.
            return await asyncio.to_thread(AvroSchema, text, list(references.values()))
        if kind == "PROTOBUF":
            serialized = await self._get(schema_path(schema_id) + SERIALIZED)
            references = await self._references(named, SERIALIZED)
            return await asyncio.to_thread(ProtobufSchema, serialized["schema"], references)
        raise NotSo(f"its type {str(kind)[:40]!r} is not supported")

    async def _references(self, named: Any, query: str) -> dict[str, str]:
        """Return the referenced schemas by reference name, dependencies first."""
        search = referenced(named, query)
        response: dict[str, Any] | None = None
        while True:
            try:
                path = search.send(response)
            except StopIteration as end:
                found: dict[str, str] = end.value
                return found
            response = await self._get(path)

    async def _get(self, path: str) -> dict[str, Any]:
        content = await ask(self._where.below(path), headers=self._headers, timeout_s=PATIENCE_S)
        answer = json.loads(content)
        if not isinstance(answer, dict):
            raise NotSo("the schema registry's response is not a JSON object")
        return answer


def registry_of(config: BrokerConfig) -> Registry | None:
    """Return the configured registry, or None if no URL is set. Raises StartupError for invalid settings."""
    url, user_info = config.str(URL), config.str(USER)
    if not url:
        if user_info:
            raise StartupError(f"{USER} is set but {URL} is not: set it to the registry's address")
        return None
    if user_info is not None:
        try:
            basic_authorization(user_info)
        except ValueError as error:
            raise StartupError(f"{USER}: {error}") from None
    try:
        return Registry(place(url), user_info)
    except ValueError as error:
        raise StartupError(f"{URL}={url}: {error}; expected for example http://127.0.0.1:8081") from None
