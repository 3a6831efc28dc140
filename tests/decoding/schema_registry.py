"""A local schema registry that responds like Confluent's."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kafka_compat.decoding.registry import Registry
from kafka_compat.http_client import place


class SchemaRegistry:
    """Stores schemas by id and by subject."""

    def __init__(self) -> None:
        self._by_id: dict[int, dict[str, Any]] = {}
        self._by_subject: dict[tuple[str, int], dict[str, Any]] = {}
        self.asked: list[str] = []
        """The requested paths, in order."""
        self.user_info: str | None = None
        """The required credentials, as user:password."""
        self.delay_s = 0.0
        """The delay before each response."""
        self.raw: dict[str, tuple[int, bytes]] = {}
        """Responses that replace the correct ones, by path."""
        self.url = ""

    def add(
        self,
        schema_id: int,
        schema: object,
        kind: str = "AVRO",
        *,
        subject: str | None = None,
        version: int = 1,
        references: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add a schema. `schema` is JSON, or the bytes of a FileDescriptorProto; `references` maps names to
        subjects, in version 1.
        """
        found: dict[str, Any] = {
            "id": schema_id,
            "text": schema if isinstance(schema, bytes) else json.dumps(schema),
            "kind": kind,
            "references": [{"name": name, "subject": of, "version": 1} for name, of in references],
        }
        self._by_id[schema_id] = found
        if subject is not None:
            self._by_subject[subject, version] = found

    def registry(self, user_info: str | None = None) -> Registry:
        """Return a client of this registry."""
        return Registry(place(self.url), user_info)

    @contextmanager
    def serve(self) -> Iterator[SchemaRegistry]:
        holder = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                holder.asked.append(self.path)
                time.sleep(holder.delay_s)  # simulates a slow registry
                status, body = holder._answer(self.path, self.headers.get("Authorization"))
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _answer(self, asked: str, authorization: str | None) -> tuple[int, bytes]:
        if self.user_info is not None:
            wanted = f"Basic {base64.b64encode(self.user_info.encode()).decode()}"
            if authorization != wanted:
                return 401, b'{"error_code": 40101, "message": "Unauthorized"}'
        if asked in self.raw:
            return self.raw[asked]
        parts = urlsplit(asked)
        serialized = parse_qs(parts.query).get("format") == ["serialized"]
        found: dict[str, Any] | None
        match parts.path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                found = self._by_id.get(int(number))
            case ["subjects"]:
                return 200, json.dumps(sorted({subject for subject, _ in self._by_subject})).encode()
            case ["subjects", subject, "versions"]:
                return 200, json.dumps(self._versions(unquote(subject))).encode()
            case ["subjects", subject, "versions", "latest"]:
                versions = self._versions(unquote(subject))
                found = self._by_subject[unquote(subject), versions[-1]] if versions else None
            case ["subjects", subject, "versions", version]:
                found = self._by_subject.get((unquote(subject), int(version)))
            case _:
                found = None
        if found is None:
            return 404, b'{"error_code": 40403, "message": "Schema not found"}'
        text = found["text"]
        if isinstance(text, bytes):
            text = base64.b64encode(text).decode() if serialized else 'syntax = "proto3";'
        answer = {"schema": text, "id": found["id"]}
        if found["kind"] != "AVRO":
            answer["schemaType"] = found["kind"]
        if found["references"]:
            answer["references"] = found["references"]
        return 200, json.dumps(answer).encode()

    def _versions(self, subject: str) -> list[int]:
        return sorted(version for of, version in self._by_subject if of == subject)


NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


def framed(schema_id: int, content: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + content
