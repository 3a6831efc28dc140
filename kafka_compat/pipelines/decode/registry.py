"""Blocking client of a schema registry with Confluent's API, for Spark's driver and executors.

The web console's client (kafka_compat.decoding.registry) is for the event loop, and gives up after two
seconds; a job waits for the registry instead, because a record without its schema would be lost.
"""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafka_compat.decoding.plain import NotSo
from kafka_compat.decoding.registry_api import (
    ACCEPT,
    SERIALIZED,
    basic_authorization,
    referenced,
    schema_path,
    version_path,
    versions_path,
)
from kafka_compat.http_client import Unreachable, place, request
from kafka_compat.pipelines.errors import JobFailed

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
_TIMEOUT_S: Final = 10.0
_PAUSE_S: Final = 0.5
_PAUSE_MAX_S: Final = 5.0
_RETRIED: Final = (429, 500, 502, 503, 504)


class RegistryFailed(JobFailed):
    """Raised if the registry does not respond, or rejects the request."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Address of a registry, the headers of each request, and the file of CA certificates (None: the
    system's). It can be pickled.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: str | None = None


class Registered(NamedTuple):
    """A registered schema. `references` contains the names and texts of other schemas, dependencies first.
    The text of a Protobuf schema is its serialized FileDescriptorProto in base64.
    """

    schema_id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class RegistryClient:
    """A client that repeats a request until it has waited `patience_s` seconds in total."""

    def __init__(
        self,
        connection: Connection,
        patience_s: float = 30.0,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create a client. Raises ValueError if the URL is invalid, and OSError for the CA file."""
        self.connection = connection
        self._place = place(connection.url, lambda: ssl.create_default_context(cafile=connection.ca_file))
        self.patience_s = patience_s
        """How long the next request waits for the registry, in s."""
        self._now_s = now_s
        self._sleep = sleep

    @property
    def url(self) -> str:
        return self.connection.url

    def schema(self, schema_id: int) -> Registered | None:
        """Return the schema with an ID, or None if the registry does not have it. Raises RegistryFailed, and
        NotSo if the schema is of an unsupported type.
        """
        found = self._get(schema_path(schema_id))
        return None if found is None else self._registered(schema_id, found)

    def version(self, subject: str, version: str = "latest") -> Registered | None:
        """Return a version of a subject, or None if it does not exist. Raises like `schema`."""
        found = self._get(version_path(subject, version))
        return None if found is None else self._registered(int(found["id"]), found)

    def newest_id(self, subject: str) -> int | None:
        """Return the ID of a subject's newest schema, or None if it does not exist. Raises RegistryFailed."""
        found = self._get(version_path(subject, "latest"))
        return None if found is None else int(found["id"])

    def versions(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions. Raises RegistryFailed."""
        found = self._get(versions_path(subject))
        return [] if found is None else [int(each) for each in found]

    def subjects(self) -> list[str]:
        """Return the names of all subjects. Raises RegistryFailed."""
        return sorted(str(each) for each in self._get("/subjects") or [])

    def _registered(self, schema_id: int, found: Mapping[str, Any]) -> Registered:
        kind, text = str(found.get("schemaType", AVRO)), str(found["schema"])
        if kind not in (AVRO, PROTOBUF, JSON):
            raise NotSo(f"schema {schema_id} is of the unsupported type {kind[:40]!r}")
        references = found.get("references", [])
        if kind != PROTOBUF:
            return Registered(schema_id, kind, text, self._references(references))
        serialized = self._get(schema_path(schema_id) + SERIALIZED, gives_up=True)
        if serialized is not None and _is_base64(str(serialized["schema"])):
            of_references = self._references(references, SERIALIZED)
            return Registered(schema_id, kind, str(serialized["schema"]), of_references)
        # Imported here, because it is seldom needed.
        from kafka_compat.pipelines.decode.proto_compiler import compiled

        return Registered(schema_id, kind, *compiled(text, dict(self._references(references))))

    def _references(self, named: Any, query: str = "") -> tuple[tuple[str, str], ...]:
        search = referenced(named, query)
        response: Any = None
        while True:
            try:
                path = search.send(response)
            except StopIteration as end:
                return tuple(end.value.items())
            response = self._get(path)

    def _get(self, path: str, *, gives_up: bool = False) -> Any:
        """Return the JSON response to a GET request, or None for status 404. With `gives_up`, also return
        None if the registry rejects the request or fails at it. Raises RegistryFailed.
        """
        deadline_s = self._now_s() + self.patience_s
        pause_s = _PAUSE_S
        headers = {"Accept": ACCEPT, **self.connection.headers}
        while True:
            status: int | None = None
            try:
                response = request(self._place.below(path), "GET", None, headers, _TIMEOUT_S)
                status, reason = response.status, f"HTTP {response.status}"
            except Unreachable as error:
                reason = str(error)
            if status == 200:
                try:
                    return json.loads(response.body)
                except ValueError:
                    raise RegistryFailed(
                        f"{self.url}{path} is not JSON: this is not the address of a schema registry."
                    ) from None
            if status == 404 or (gives_up and status in (400, 422, 500)):
                return None
            if status in (401, 403):
                raise RegistryFailed(
                    f"The schema registry at {self.url} rejected the request (HTTP {status}).",
                    "Set basic.auth.user.info or bearer.auth.token in --schema-registry-config FILE.",
                )
            if (status is not None and status not in _RETRIED) or self._now_s() + pause_s > deadline_s:
                raise RegistryFailed(
                    f"The schema registry at {self.url} does not respond: {reason}.",
                    "Is it running, and is the address of --schema-registry correct?",
                )
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def authorization(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the request headers for the credentials in Confluent's client settings `basic.auth.user.info`
    and `bearer.auth.token`. Raises ValueError if a setting is invalid.
    """
    user_info, token = properties.get("basic.auth.user.info"), properties.get("bearer.auth.token")
    if user_info is not None:
        try:
            return basic_authorization(user_info)
        except ValueError as error:
            raise ValueError(f"basic.auth.user.info: {error}") from None
    return {} if token is None else {"Authorization": f"Bearer {token}"}
