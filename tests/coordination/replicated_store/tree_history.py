"""Histories of operations on a tree, and checkers for them.

`is_linearizable` searches for an order of the operations that explains all results, and in which an operation
that ended before another one began precedes it. Operations of one session take effect in the order in which
they began; those that are left when it ends have no effect. The function processes the history in the order
of time, and keeps all states that the tree may have (Lowe, "Testing for linearizability", 2017).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kafka_compat.coordination.store import metadata_store as stores
from tests.coordination.replicated_store import model

_ticks = itertools.count()


@dataclass(eq=False)
class Operation:
    """An operation of a session: a transaction, a read after a sync, or the end of the session.

    `given_up` is set if its outcome is unknown, but it has no effect after this time.
    """

    kind: Literal["multi", "read", "end"]
    session: int
    operations: Sequence[stores.Operation] = ()
    path: str = ""
    begin: int = field(default_factory=lambda: next(_ticks))
    ended: int | None = None
    given_up: int | None = None
    result: model.Results | None = None

    def end(self, result: model.Results) -> None:
        """Record the result."""
        self.result, self.ended = result, next(_ticks)

    def give_up(self) -> None:
        """Record that an operation without a result has no effect from now on."""
        if self.ended is None:
            self.given_up = next(_ticks)


Frozen = frozenset[tuple[str, model.Value]]
Configuration = tuple[Frozen, frozenset[Operation], frozenset[int]]
"""A possible state, the operations without a result that have taken effect in it, and the ended sessions."""


def is_linearizable(history: Iterable[Operation]) -> str | None:
    """Return None, or the first operation whose result cannot be explained."""
    moments: list[tuple[int, str, Operation]] = []
    for operation in history:
        moments.append((operation.begin, "begin", operation))
        if operation.ended is not None:
            moments.append((operation.ended, "end", operation))
        elif operation.given_up is not None:
            moments.append((operation.given_up, "give up", operation))
    pending: list[Operation] = []
    possible: set[Configuration] = {(frozenset(model.EMPTY.items()), frozenset(), frozenset())}
    for _, what, operation in sorted(moments, key=lambda moment: moment[0]):
        if what == "begin":
            pending.append(operation)
            continue
        if what == "end":
            possible = {
                (state, done - {operation}, ended)
                for state, done, ended in _closure(possible, pending)
                if operation in done
            }
            if not possible:
                return f"{operation}"
        else:
            # It takes effect before this moment, or never.
            possible = {
                (state, done - {operation}, ended) for state, done, ended in _closure(possible, pending)
            }
        pending.remove(operation)
    return None


def _closure(possible: set[Configuration], pending: Sequence[Operation]) -> set[Configuration]:
    """Return all configurations after some of the pending operations have taken effect."""
    found = set(possible)
    new = list(possible)
    while new:
        state, done, ended = new.pop()
        blocked = set(ended)
        for operation in pending:
            if operation in done or operation.session in (ended if operation.kind == "end" else blocked):
                continue
            blocked.add(operation.session)
            after = _effect(dict(state), operation)
            if after is None:
                continue
            gone = ended | {operation.session} if operation.kind == "end" else ended
            configuration = frozenset(after.items()), done | {operation}, gone
            if configuration not in found:
                found.add(configuration)
                new.append(configuration)
    return found


def _effect(state: model.State, operation: Operation) -> model.State | None:
    """Return the state after an operation, or None if its result would differ."""
    if operation.kind == "end":
        return model.end(state, operation.session)
    if operation.kind == "read":
        result = model.read(state, operation.path)
        after = state
    else:
        after, result = model.multi(state, operation.session, operation.operations)
    return after if operation.result in (None, result) else None
