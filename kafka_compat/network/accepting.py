"""Acceptance of connections on one listening socket, including when the process runs out of file descriptors.

Rules
1. At most ACCEPTS_MAX connections are accepted in succession, so that a flood of connections does not block
   the event loop.
2. Some descriptors are reserved for files (`reserved_descriptors`). If a connection would use a reserved
   descriptor, it is closed at once, unless `make_room` can close cached files. The kernel assigns the lowest
   free number, so the number of a new connection shows how many descriptors are in use.
3. When no descriptor is left, the spare descriptor is released in order to accept one connection and close
   it. Rejecting a client at once is better than leaving it in the backlog, and the event loop does not spin.
4. A shortage of descriptors is logged once per QUIET_S, with advice.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

log = logging.getLogger(__name__)

ACCEPTS_MAX = 32
QUIET_S = 30.0
_RETRY_S = 0.1
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_OUT_OF_MEMORY = (errno.ENOBUFS, errno.ENOMEM)
# The minimum number of descriptors that Kafka's documentation recommends.
_RECOMMENDED = 100_000


def reserved_descriptors(limit: int) -> int:
    """Return the number of descriptors to reserve for files, if `limit` is the descriptor limit."""
    return min(max(limit // 8, 16), 1024)


class Descriptors:
    """Protection from descriptor shortages: the spare descriptor, the reserve for files, and the warning."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.make_room: Callable[[int], bool] = lambda kept: False
        """Function that closes cached files if more than `kept` are open. Returns whether it closed any."""
        self._spare = -1
        self._logged_s = -QUIET_S
        self._refused = 0
        self.take_spare()

    def take_spare(self) -> None:
        if self._spare < 0:
            try:
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self._spare = -1

    def give_spare(self) -> bool:
        """Close the spare descriptor, so that a connection can use it. Return False if there is none."""
        if self._spare < 0:
            return False
        os.close(self._spare)
        self._spare = -1
        return True

    def close(self) -> None:
        self.give_spare()

    def allow(self, descriptor: int) -> bool:
        """Return whether a connection may keep this descriptor."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return True
        reserved = reserved_descriptors(limit)
        return descriptor < limit - reserved or self.make_room(reserved)

    def refused(self, host: str) -> None:
        """Log, at most once per QUIET_S seconds, that connections are rejected and why."""
        self._refused += 1
        now_s = monotonic()
        if now_s - self._logged_s < QUIET_S:
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        log.warning(
            "Rejected connections (count: %d, last from %s): the process may open %s files and connections "
            "(`ulimit -n`; hard limit: %s), and the last file descriptors are reserved for logs. Raise the "
            "limit before you start the broker, for example with `ulimit -n %d`",
            self._refused,
            host,
            "any number of" if soft == resource.RLIM_INFINITY else soft,
            "unlimited" if hard == resource.RLIM_INFINITY else hard,
            max(_RECOMMENDED, 2 * soft),
        )
        self._logged_s = now_s
        self._refused = 0


class Acceptor:
    """The acceptor of one listening socket. It passes each connection to `accepted(socket, peer)`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        descriptors: Descriptors,
        accepted: Callable[[socket.socket, Any], None],
    ) -> None:
        self._loop = loop
        self._listening = listening
        self._descriptors = descriptors
        self._accepted = accepted
        self._retry: asyncio.TimerHandle | None = None
        self._held = False

    def hold(self) -> None:
        """Stop accepting connections until `go_on` is called. Clients wait in the backlog."""
        self._held = True
        self._loop.remove_reader(self._listening.fileno())

    def go_on(self) -> None:
        self._held = False
        if self._listening.fileno() >= 0:
            self.start()

    def start(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening.fileno(), self._on_acceptable)

    def let_go(self) -> None:
        """Stop accepting connections for good. The listening socket stays open."""
        if self._retry is not None:
            self._retry.cancel()
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening.fileno())

    def stop(self) -> None:
        """Stop accepting connections, and close the listening socket."""
        self.let_go()
        self._listening.close()

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                accepted, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    if not self._refuse():
                        return
                elif error.errno in _OUT_OF_MEMORY:
                    log.warning("Could not accept a connection: %s; retrying", error.strerror)
                    self._pause()
                    return
                # Other errors mean that the client closed the connection before it was accepted.
                continue
            if not self._descriptors.allow(accepted.fileno()):
                accepted.close()
                self._descriptors.refused(peer[0] if peer else "")
                continue
            self._accepted(accepted, peer)
            if self._held:
                return

    def _refuse(self) -> bool:
        """Use the spare descriptor to accept one connection and close it. Return False if this fails."""
        descriptors = self._descriptors
        if not descriptors.give_spare():
            descriptors.refused("")
            self._pause()
            return False
        try:
            accepted, peer = self._listening.accept()
        except OSError:
            return False
        else:
            accepted.close()
            descriptors.refused(peer[0] if peer else "")
            return True
        finally:
            descriptors.take_spare()

    def _pause(self) -> None:
        self._loop.remove_reader(self._listening.fileno())
        self._descriptors.take_spare()
        self._retry = self._loop.call_later(_RETRY_S, self.start)
