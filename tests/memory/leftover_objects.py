"""Objects in this process that still refer to deleted resources, with the garbage collector off.

The names of all topics, groups, clients and other resources of a test contain MARK. After they are deleted,
no object may mention such a name: neither an object that is still referenced, such as an entry of a registry,
nor one that only the garbage collector would free, because it is part of a reference cycle.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CoroutineType, FrameType, GeneratorType
from typing import Any

import pytest

MARK = "comes-and-goes"
_MARK_BYTES = MARK.encode()
PATIENCE_S = 20
_CHAIN_MAX = 8
_SHOWN_MAX = 5
_EXAMINED_AT_ONCE = 1000


_freeze = gc.freeze

_before: list[Any] = []
"""Objects that mention such names from the start, such as the report of an earlier failed test."""
_old_caches: list[Any] = []
"""Caches of functions, which are older than the objects that are examined."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the garbage collector, and logging, because pytest keeps log records, which contain names.

    Within this context, call `examine_from_now_on`, start a broker, and then call `started`. The functions
    below examine only the objects created since. Older objects, such as the registries of modules, are very
    many in a long run of tests, and examined once, at the end: raises AssertionError that shows the
    references.
    """
    threshold = gc.get_threshold()
    logging.disable()
    gc.collect()
    gc.disable()
    gc.unfreeze()
    _before[:] = _holders()
    _old_caches[:] = _caches()
    gc.freeze()
    try:
        with pytest.MonkeyPatch.context() as patch:
            # A broker freezes what survives a collection, and frozen objects are not examined.
            patch.setattr(gc, "freeze", lambda: None)
            patch.setattr(gc, "unfreeze", lambda: None)
            yield
        gc.unfreeze()
        if holders := _holders():
            raise AssertionError(f"{len(holders)} objects are left:\n" + "\n".join(_shown(holders)))
    finally:
        gc.unfreeze()
        _before.clear()
        _old_caches.clear()
        logging.disable(logging.NOTSET)
        gc.set_threshold(*threshold)
        gc.enable()
        gc.collect()


def examine_from_now_on() -> None:
    """Let the functions below examine only objects that are created from now on."""
    _old_caches.extend(_caches())
    _freeze()


def started() -> None:
    """Ignore the objects that mention names of a test so far. Call this after the broker has started, since
    its settings name a super user.
    """
    _before.extend(_holders())


async def nothing_left() -> None:
    """Wait until no object mentions a name with MARK. Raises AssertionError that shows the references."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_S
    while holders := _holders():
        if loop.time() > deadline_s:
            raise AssertionError(f"{len(holders)} objects are left:\n" + "\n".join(_shown(holders)))
        del holders
        await asyncio.sleep(0.2)  # polling interval: objects are freed without an event


async def grown(before: Counter[str], by: int) -> set[str]:
    """Return the types with at least `by` more objects than before. Waits for a while for objects to be
    freed.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_S
    while found := {name for name, count in (counts() - before).items() if count >= by}:
        if loop.time() > deadline_s:
            break
        await asyncio.sleep(0.2)  # polling interval: objects are freed without an event
    return found


def counts() -> Counter[str]:
    """Return the number of objects by type, for the project's types."""
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        module = type(each).__module__
        if isinstance(module, str) and module.startswith("kafka_compat."):
            found[f"{module}.{type(each).__qualname__}"] += 1
    return found


def _mentioned(referents: list[Any]) -> list[str | bytes]:
    """Return the names with MARK."""
    return [
        each
        for each in referents
        if (type(each) is str and MARK in each and each != MARK)
        or (type(each) is bytes and _MARK_BYTES in each)
    ]


def _holders() -> list[Any]:
    """Return the objects that refer to a name with MARK."""
    # Caches hold a bounded number of results.
    for cache in (*_old_caches, *_caches()):
        cache.cache_clear()
    known = {id(each) for each in _before}
    return [
        each for each in _mentioning(gc.get_objects()) if id(each) not in known and not _is_of_tests(each)
    ]


def _caches() -> list[Any]:
    return [each for each in gc.get_objects() if type(each) is type(_cached)]


def _mentioning(objects: list[Any]) -> Iterator[Any]:
    # Hardly any object mentions such a name, so examine many of them at once.
    for start in range(0, len(objects), _EXAMINED_AT_ONCE):
        some = objects[start : start + _EXAMINED_AT_ONCE]
        if _mentioned(gc.get_referents(*some)):
            yield from (each for each in some if _mentioned(gc.get_referents(each)))


def _is_of_tests(holder: object) -> bool:
    """Return whether the holder is a frame of a test, or a module with names as constants."""
    if isinstance(holder, FrameType):
        return "/tests/" in holder.f_code.co_filename
    if isinstance(holder, CoroutineType | GeneratorType):
        code = holder.cr_code if isinstance(holder, CoroutineType) else holder.gi_code
        return "/tests/" in code.co_filename
    return isinstance(holder, dict) and "__builtins__" in holder


@lru_cache
def _cached() -> None: ...


def _shown(holders: list[Any]) -> Iterator[str]:
    everything = gc.get_objects()
    for holder in holders[:_SHOWN_MAX]:
        names = [repr(each)[:80] for each in _mentioned(gc.get_referents(holder))]
        chain = [_kind(holder)]
        seen = {id(holders), id(everything), id(holder)}
        current = holder
        for _ in range(_CHAIN_MAX):
            referrers = [
                each
                for each in gc.get_referrers(current)
                if id(each) not in seen and not isinstance(each, FrameType)
            ]
            if not referrers:
                break
            current = referrers[0]
            seen |= {id(current), id(referrers)}
            chain.append(_kind(current))
        yield f"{', '.join(names[:3])} in {' in '.join(chain)}"


def _kind(value: object) -> str:
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if isinstance(value, dict):
        return f"{kind}[{', '.join(sorted(str(key)[:30] for key in list(value)[:4]))}]"
    return f"{kind} {value.__qualname__}" if callable(value) and hasattr(value, "__qualname__") else kind
