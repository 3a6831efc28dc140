"""Those who want to know of every step that a partition makes, until they are taken out: parked fetches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from kafka_compat.replication.waiters import guarded

CallSoon = Callable[[Callable[[], None]], object]

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class CommitListener(Protocol[P_contra]):
    """Someone who waits for more records of a partition, such as a parked fetch."""

    def on_committed(self, partition: P_contra) -> None: ...


class Listeners(dict[CommitListener[P], None], Generic[P]):
    """The listeners of one partition, in the order of their coming. True while there are any, as quickly as
    of any dictionary.

    The partition, which has this object, is passed to each call: if each kept the other, only the garbage
    collector would free them.
    """

    __slots__ = ("_call_soon", "_is_about_to_tell")

    def __init__(self, call_soon: CallSoon) -> None:
        super().__init__()
        self._call_soon = call_soon
        self._is_about_to_tell = False

    def add(self, listener: CommitListener[P]) -> None:
        """Have it told from now on."""
        self[listener] = None

    def discard(self, listener: CommitListener[P]) -> None:
        """Have it told no more, if it was."""
        self.pop(listener, None)

    def tell_soon(self, partition: P) -> None:
        """Tell them, not from here: the producer's answer leaves first, and appends that came together wake a
        reader once.
        """
        if not self._is_about_to_tell:
            self._is_about_to_tell = True
            self._call_soon(partial(self.tell, partition))

    def tell(self, partition: P) -> None:
        """Tell all who listen now."""
        self._is_about_to_tell = False
        for listener in list(self):
            guarded(listener.on_committed, partition)
