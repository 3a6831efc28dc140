"""Who listens to a partition."""

from __future__ import annotations

from typing import Any

from kafka_compat.replication.listeners import CallSoon, Listeners


class Listened:
    """A partition, as those know it who wait for its steps. Of very many most have nobody: the listeners are
    made for the first.
    """

    __slots__ = ("_append_listeners", "_call_soon", "_listeners")

    def __init__(self, call_soon: CallSoon) -> None:
        self._call_soon = call_soon
        self._listeners: Listeners[Any] | None = None
        self._append_listeners: Listeners[Any] | None = None

    @property
    def listeners(self) -> Listeners[Any]:
        """Those who wait for committed records: consumers."""
        if self._listeners is None:
            self._listeners = Listeners(self._call_soon)
        return self._listeners

    @property
    def append_listeners(self) -> Listeners[Any]:
        """Those who wait for any records: followers."""
        if self._append_listeners is None:
            self._append_listeners = Listeners(self._call_soon)
        return self._append_listeners

    def tell_listeners(self) -> None:
        """Tell all of them now."""
        for listeners in (self._listeners, self._append_listeners):
            if listeners:
                listeners.tell(self)
