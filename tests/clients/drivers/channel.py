"""The line protocol between the scenarios and a client program: one JSON object per line in each direction.

A request is `{"do": verb, ...arguments}`. The response is a JSON object, or `{"error": code, "message":
text}` with Kafka's error code (-1000 if the client failed without one). Bytes are encoded as Latin-1 strings,
so that any byte can be represented.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

LOCAL_FAILURE = -1000

Answer = dict[str, Any]


def to_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def to_bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode("latin-1")


def serve(client: object, code_of: Callable[[BaseException], int | None]) -> None:
    """Process requests from stdin until it is closed, by calling `client.<verb>(**arguments)`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # output of the client library must not be mistaken for a response
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        verb = request.pop("do")
        try:
            answer = getattr(client, verb)(**request)
        except Exception as error:
            code = code_of(error)
            answer = {
                "error": LOCAL_FAILURE if code is None else code,
                "message": f"{type(error).__name__}: {error}",
            }
        answers.write(json.dumps(answer) + "\n")
    answers.close()
    sys.stderr.flush()
    os._exit(0)  # exit although members may still be polling


class MemberLog:
    """The assignment and records of a group member, shared between its polling thread and the requests."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.received: list[tuple[str, int, int]] = []
        self.assignment: list[tuple[str, int]] = []
        self.error: str | None = None

    def state(self) -> Answer:
        with self.lock:
            return {
                "assignment": sorted([topic, partition] for topic, partition in self.assignment),
                "received": [[topic, partition, offset] for topic, partition, offset in self.received],
                "failure": self.error,
            }
