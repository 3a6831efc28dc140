"""Regular expressions over transactional IDs (KIP-1152), matched in time linear in the length of the ID.

The patterns come from clients, and Python's `re` takes exponential time for some patterns. `re` is therefore
only used to parse a pattern. A nondeterministic automaton matches it by following all states at once, like
RE2, which Kafka uses. Look-around and backreferences are not supported, as in RE2.
"""

import importlib
import re
import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

_parser: Any = importlib.import_module("re._parser")

_STATES_MAX: Final = 20_000
_DIGITS: Final = frozenset(string.digits)
_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_SPACE: Final = frozenset("\t\n\f\r ")

Accepts = Callable[[str], bool]


class InvalidPattern(Exception):
    """Raised if the pattern is not a valid regular expression, or uses an unsupported construct."""


class _State:
    """A state of the automaton. A matching character leads to `target`, and an empty match to `free`."""

    __slots__ = ("accepts", "at_end", "at_start", "free", "target")

    def __init__(self) -> None:
        self.accepts: Accepts | None = None
        self.target: _State | None = None
        self.free: list[_State] = []
        self.at_start = False
        self.at_end = False


class IdPattern:
    """A pattern that must match a whole transactional ID."""

    def __init__(self, pattern: str) -> None:
        """Compile the pattern. Raises InvalidPattern if it is invalid or uses an unsupported construct."""
        try:
            parsed = _parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidPattern(str(error)) from error
        self._ignore_case = bool(parsed.state.flags & re.IGNORECASE)
        self._count = 0
        self._end = self._new()
        self._start = self._sequence(parsed, self._end)

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches all of `text`."""
        states = _closure([self._start], is_start=True, is_end=not text)
        for position, character in enumerate(text, 1):
            reached = [
                state.target
                for state in states
                if state.accepts is not None and state.target is not None and state.accepts(character)
            ]
            states = _closure(reached, is_start=False, is_end=position == len(text))
        return self._end in states

    # The following methods build the automaton, from its end to its start.

    def _new(self) -> _State:
        self._count += 1
        if self._count > _STATES_MAX:
            raise InvalidPattern("the pattern is too large")
        return _State()

    def _sequence(self, nodes: Iterable[Any], after: _State) -> _State:
        for kind, argument in reversed(list(nodes)):
            after = self._node(str(kind), argument, after)
        return after

    def _node(self, kind: str, argument: Any, after: _State) -> _State:
        if kind in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._character(_acceptor(kind, argument), after)
        if kind == "BRANCH":
            return self._choice([self._sequence(branch, after) for branch in argument[1]])
        if kind == "SUBPATTERN" and not argument[1] and not argument[2]:
            return self._sequence(argument[3], after)
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, repeated = argument
            return self._repeat(least, most, repeated, after)
        if kind == "AT" and str(argument) in (
            "AT_BEGINNING",
            "AT_BEGINNING_STRING",
            "AT_END",
            "AT_END_STRING",
        ):
            state = self._choice([after])
            state.at_start = "BEGINNING" in str(argument)
            state.at_end = not state.at_start
            return state
        raise InvalidPattern(f"{kind.lower()} is not supported")

    def _character(self, accepts: Accepts, after: _State) -> _State:
        state = self._new()
        state.target = after
        state.accepts = accepts
        if self._ignore_case:
            state.accepts = lambda one: accepts(one) or accepts(one.swapcase())
        return state

    def _choice(self, targets: list[_State]) -> _State:
        state = self._new()
        state.free = targets
        return state

    def _repeat(self, least: int, most: Any, nodes: Sequence[Any], after: _State) -> _State:
        if most == _parser.MAXREPEAT:
            loop = self._choice([after])
            loop.free.append(self._sequence(nodes, loop))
            after = loop
        else:
            end = after
            for _ in range(int(most) - least):
                after = self._choice([self._sequence(nodes, after), end])
        for _ in range(least):
            after = self._sequence(nodes, after)
        return after


def _closure(states: Iterable[_State], *, is_start: bool, is_end: bool) -> set[_State]:
    """Return these states, and all states that are reachable from them without reading a character."""
    found: set[_State] = set()
    waiting = list(states)
    while waiting:
        state = waiting.pop()
        if state not in found:
            found.add(state)
            if (is_start or not state.at_start) and (is_end or not state.at_end):
                waiting.extend(state.free)
    return found


def _acceptor(kind: str, argument: Any) -> Accepts:
    if kind == "ANY":
        return lambda one: one != "\n"
    if kind == "LITERAL":
        return lambda one: ord(one) == argument
    if kind == "NOT_LITERAL":
        return lambda one: ord(one) != argument
    negated = bool(argument) and str(argument[0][0]) == "NEGATE"
    members = [_member(str(name), value) for name, value in argument[negated:]]
    return lambda one: any(member(one) for member in members) is not negated


def _member(kind: str, argument: Any) -> Accepts:
    if kind == "LITERAL":
        return lambda one: ord(one) == argument
    if kind == "RANGE":
        low, high = argument
        return lambda one: low <= ord(one) <= high
    name = str(argument).removeprefix("CATEGORY_")
    known = {"DIGIT": _DIGITS, "WORD": _WORD, "SPACE": _SPACE}.get(name.removeprefix("NOT_"))
    if known is None:
        raise InvalidPattern(f"{name.lower()} is not supported")
    return lambda one: (one in known) is not name.startswith("NOT_")
