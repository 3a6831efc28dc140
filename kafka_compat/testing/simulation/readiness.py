"""Readiness of simulated sockets: the simulation's replacement for asyncio's selector."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

_FIRST = 3


class Writable(Protocol):
    """Interface of a simulated socket."""

    @property
    def is_writable(self) -> bool:
        """Whether the socket would accept data."""


class Readiness(selectors.BaseSelector):
    """Selector for simulated sockets. `may_run` returns whether the process of a callback is running."""

    def __init__(self, may_run: Callable[[asyncio.Handle], bool]) -> None:
        self._may_run = may_run
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._sockets: dict[int, Writable] = {}
        self._readable: dict[int, None] = {}
        self._to_write: dict[int, None] = {}

    # --- descriptors

    def open(self, opened: Writable) -> int:
        """Allocate and return the lowest free descriptor, as the kernel does."""
        descriptor = _FIRST
        while descriptor in self._sockets:
            descriptor += 1
        self._sockets[descriptor] = opened
        return descriptor

    def close_descriptor(self, descriptor: int) -> None:
        """Free a descriptor."""
        for where in (self._keys, self._sockets, self._readable, self._to_write):
            where.pop(descriptor, None)

    def readable(self, descriptor: int, is_so: bool) -> None:
        """Mark a descriptor as readable or not readable."""
        if not is_so:
            self._readable.pop(descriptor, None)
        elif descriptor in self._sockets:
            self._readable[descriptor] = None

    def collect(self, ready: deque[asyncio.Handle]) -> None:
        """Append the callbacks of all ready descriptors to `ready`."""
        keys = self._keys
        for descriptor in self._readable:
            key = keys.get(descriptor)
            if key is not None and key.events & selectors.EVENT_READ and self._may_run(key.data[0]):
                ready.append(key.data[0])
        for descriptor in self._to_write:
            handle = keys[descriptor].data[1]
            if self._sockets[descriptor].is_writable and self._may_run(handle):
                ready.append(handle)

    # --- asyncio's selector interface

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.modify(fileobj, events, data)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if descriptor not in self._sockets:
            raise ValueError(f"unknown descriptor {descriptor}: a simulation cannot use real sockets")
        key = self._keys[descriptor] = selectors.SelectorKey(fileobj, descriptor, events, data)
        if events & selectors.EVENT_WRITE:
            self._to_write[descriptor] = None
        else:
            self._to_write.pop(descriptor, None)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._to_write.pop(descriptor, None)
        return self._keys.pop(descriptor)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def close(self) -> None:
        self._keys.clear()
