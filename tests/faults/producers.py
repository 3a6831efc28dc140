"""Idempotent acks=all producers in separate processes, which write all acknowledgements with their times to a
file.

The arguments of a program are: bootstrap servers, topic, partitions, pause between two records in ms, request
timeout in ms, and the file for the acknowledgements. Record n is sent to partition n % partitions with the
value `value_of`. Each line of the file is "NUMBER PARTITION TIME_MS OUTCOME", where OUTCOME is the offset or
an error. At the end of its standard input, the program stops sending, waits for records in flight, and exits.
"""

from __future__ import annotations

import functools
import itertools
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tests.support.client_security import for_kafka_python, for_librdkafka

LIBRDKAFKA = "confluent"
CLIENTS = (LIBRDKAFKA, "kafka-python", "java")
NO_OFFSET = -1
_DELIVERY_TIMEOUT_MS = 120_000
_LINGER_MS = 2
_SETUP_TIMEOUT_MS = 2000


def value_of(client: str, number: int) -> bytes:
    """Return the value of a client's record `number`, which identifies the record and varies in length."""
    return b"%s:%d:" % (client.encode(), number) + b"x" * (number * 31 % 300)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledged record, with NO_OFFSET if the client did not report the offset."""

    number: int
    partition: int
    time_ms: int
    offset: int

    @property
    def place(self) -> tuple[int, int]:
        """(partition, offset)"""
        return self.partition, self.offset


class Producer:
    """A running client."""

    def __init__(
        self,
        client: str,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        *,
        pause_ms: int,
        request_timeout_ms: int,
        directory: Path,
    ) -> None:
        self.client = client
        self.partitions = partitions
        self._file = directory / f"{client}.acknowledgements"
        self._file.touch()
        self._reader = open(self._file)  # noqa: SIM115 - closed by `kill`
        self._unfinished = ""
        self._acknowledged: list[Acknowledgement] = []
        self._given_up: dict[int, str] = {}
        numbers = (partitions, pause_ms, request_timeout_ms)
        self._log = open(directory / f"{client}.log", "wb")  # noqa: SIM115 - closed with the process
        self._child = subprocess.Popen(
            [*_command(client), bootstrap_servers, topic, *map(str, numbers), str(self._file)],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
        )

    def stop(self) -> None:
        """Stop sending, and wait until all records sent are acknowledged or given up."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        code = self._child.wait(_DELIVERY_TIMEOUT_MS / 1000 + 30)
        self._log.close()
        assert code == 0, f"{self.client} exited with {code}: {self.said()}"

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self._log.close()
        self.outcomes()
        self._reader.close()

    def said(self) -> str:
        """Return the end of the client's log."""
        return Path(self._log.name).read_text(errors="replace")[-4000:]

    def outcomes(self) -> tuple[list[Acknowledgement], dict[int, str]]:
        """Return the acknowledgements so far in order of arrival, and the errors of records that were given
        up.
        """
        while not self._reader.closed and (line := self._reader.readline()):
            self._unfinished += line
            if not line.endswith("\n"):
                break
            number, partition, time_ms, outcome = self._unfinished.strip().split(" ", 3)
            self._unfinished = ""
            if outcome.lstrip("-").isdigit():
                item = Acknowledgement(int(number), int(partition), int(time_ms), int(outcome))
                self._acknowledged.append(item)
            else:
                self._given_up[int(number)] = outcome
        return self._acknowledged, self._given_up

    def acknowledged_since(self, time_ms: int) -> bool:
        """Return whether every partition has an acknowledgement after `time_ms`. Raises AssertionError if the
        client has exited.
        """
        assert self._child.poll() is None, f"{self.client} exited: {self.said()}"
        acknowledged, _ = self.outcomes()
        recent = itertools.takewhile(lambda item: item.time_ms > time_ms, reversed(acknowledged))
        return len({item.partition for item in recent}) == self.partitions


def is_login_not_answered(client: str, error: str) -> bool:
    """Return whether librdkafka gave a record up because a paused broker did not respond when the client
    authenticated again. It also does so with Apache Kafka, and reports the same error as for a failed
    authentication.
    """
    return client == LIBRDKAFKA and "code=_AUTHENTICATION" in error


def now_ms() -> int:
    """Return the time on the clock that the acknowledgements use."""
    return time.time_ns() // 1_000_000


def _command(client: str) -> list[str]:
    if client != "java":
        return [sys.executable, "-m", "tests.faults.producers", client]
    from tests.clients.programs import java_command

    source = Path(__file__).with_name("AckedProducer.java")
    return java_command("AckedProducer", "3.9.1", (str(source),))


Done = Callable[[int | str], None]
Send = Callable[[int, bytes, Done], None]


def _confluent(
    bootstrap_servers: str, topic: str, request_timeout_ms: int
) -> tuple[Send, Callable[[], object]]:
    from confluent_kafka import Producer as Client

    client = Client(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": _LINGER_MS,
            "socket.timeout.ms": request_timeout_ms,
            "request.timeout.ms": request_timeout_ms,
            "message.timeout.ms": _DELIVERY_TIMEOUT_MS,
            "debug": "eos",  # logs why an epoch is bumped
            **for_librdkafka(),
        }
    )

    def serve() -> None:
        while not ended.is_set():
            client.poll(0.1)

    ended = threading.Event()
    server = threading.Thread(target=serve)
    server.start()

    def send(partition: int, value: bytes, done: Done) -> None:
        def delivered(error: object, message: object) -> None:
            offset = message.offset()  # type: ignore[attr-defined]
            # If a batch was already stored, librdkafka does not report its offset.
            done(str(error) if error is not None else NO_OFFSET if offset is None else offset)

        client.produce(topic, value, partition=partition, on_delivery=delivered)

    def finish() -> None:
        ended.set()
        server.join()
        client.flush(_DELIVERY_TIMEOUT_MS / 1000)

    return send, finish


def _kafka_python(
    bootstrap_servers: str, topic: str, request_timeout_ms: int
) -> tuple[Send, Callable[[], object]]:
    from kafka import KafkaProducer
    from kafka.net.compat import KafkaNetClient

    _mend_handshakes()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    client = KafkaProducer(
        bootstrap_servers=bootstrap_servers.split(","),
        enable_idempotence=True,
        acks="all",
        linger_ms=_LINGER_MS,
        request_timeout_ms=request_timeout_ms,
        # Use the Java client's default; the default of kafka-python is 30 s.
        reconnect_backoff_max_ms=1000,
        # kafka-python treats connection setup as a request and would wait 10 s, then 20, then 30. A paused
        # broker accepts the connection, but never responds.
        kafka_client=functools.partial(
            KafkaNetClient,
            socket_connection_setup_timeout_ms=_SETUP_TIMEOUT_MS,
            socket_connection_setup_timeout_max_ms=_SETUP_TIMEOUT_MS,
        ),
        delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
        max_block_ms=_DELIVERY_TIMEOUT_MS,
        **for_kafka_python(),
    )

    def send(partition: int, value: bytes, done: Done) -> None:
        future = client.send(topic, value, partition=partition)
        future.add_callback(lambda found: done(found.offset))
        future.add_errback(lambda error: done(repr(error)))

    def finish() -> None:
        client.flush(_DELIVERY_TIMEOUT_MS / 1000)
        client.close(30)

    return send, finish


def _mend_handshakes() -> None:
    """Mend TLS handshakes of kafka-python 3.0.12. They have no timeout: a paused broker would block all
    sends, to any broker, until it resumes. And if a broker dies during a handshake for a metadata request,
    the OSError ends the task that refreshes the metadata, and the client never learns of new leaders.
    """
    from kafka.errors import KafkaConnectionError
    from kafka.net.transport import KafkaSSLTransport

    endless = KafkaSSLTransport.handshake

    async def handshake(transport: Any) -> None:
        def give_up() -> None:
            transport._sock.shutdown(socket.SHUT_RDWR)

        timer = transport._net.call_later(_SETUP_TIMEOUT_MS / 1000, give_up)
        try:
            await endless(transport)
        except OSError as error:
            raise KafkaConnectionError(str(error)) from error
        finally:
            transport._net.cancel(timer)

    KafkaSSLTransport.handshake = handshake


def _run(client: str, send: Send, partitions: int, pause_ms: int, file: TextIO) -> None:
    """Send records at a steady pace until the input ends."""
    stopping = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    began, number = time.monotonic(), 0
    while not stopping.wait(max(0.0, began + number * pause_ms / 1000 - time.monotonic())):
        partition = number % partitions

        def done(outcome: int | str, number: int = number, partition: int = partition) -> None:
            print(number, partition, now_ms(), outcome, file=file, flush=True)

        send(partition, value_of(client, number), done)
        number += 1


def main(
    client: str,
    bootstrap_servers: str,
    topic: str,
    partitions: str,
    pause_ms: str,
    request_timeout_ms: str,
    file: str,
) -> None:
    """Run one of the Python clients as a program."""
    make = _confluent if client == LIBRDKAFKA else _kafka_python
    with open(file, "w") as acknowledgements:
        send, finish = make(bootstrap_servers, topic, int(request_timeout_ms))
        _run(client, send, int(partitions), int(pause_ms), acknowledgements)
        finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
