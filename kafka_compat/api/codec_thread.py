"""A thread that decodes and encodes very long messages, so that they do not block the event loop.

A message is long if its arrays have more than ELEMENTS_ON_LOOP_MAX elements in total. The size of its records
does not matter, because records are not parsed. The codec detects long messages: on the loop, it processes a
limited number of elements, which takes a few milliseconds, and then raises TooLong. The thread then processes
the message from the start. All connections share the thread, so that many long requests delay other requests
no more than one does: the interpreter alternates between the two threads.

The thread also frees long responses, in parts: freeing hundreds of thousands of objects at once would keep
the interpreter from the loop for tens of milliseconds.

No request may have more than ELEMENTS_MAX elements. A frame of 100 MB could contain 50 million elements,
which would take up gigabytes of memory as objects.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")

ELEMENTS_ON_LOOP_MAX = 2_000
ELEMENTS_MAX = 1_000_000

_FREED_AT_ONCE: Final = 20
"""Number of elements of an array that are freed at once. Each may have arrays of its own."""
_REFERENCES_OF_OWNED: Final = 3
"""References to an array that only its message has: `_free` adds those of a variable and of an argument."""

_TURN_S = sys.getswitchinterval()
_SHORT_TURN_S = 0.0005
"""The interpreter's thread switch interval while the codec's thread is working. For another client's request,
the loop makes about three system calls, and waits for the interpreter after each of them: a total of 15 ms
with the default of 5 ms.
"""


class CodecThread:
    """The thread that decodes and encodes very long messages. It is started on first use."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._pending = 0

    def run(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Call `function` in the thread, and return a future for its result or exception."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "codec")
        if not self._pending:
            sys.setswitchinterval(_SHORT_TURN_S)
        self._pending += 1
        work = asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
        work.add_done_callback(self._done)
        return work

    def free(self, response: Any) -> None:
        """Empty the arrays of a response that has been sent, except those that something else refers to.

        Does nothing after `close`, since a new thread would outlive the broker.
        """
        if self._executor is not None:
            self.run(_free, response)

    def _done(self, _: object) -> None:
        self._pending -= 1
        if not self._pending:
            sys.setswitchinterval(_TURN_S)

    def close(self) -> None:
        """Drop queued calls, without waiting for the call in progress."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def _free(response: Any) -> None:
    for field in response.__fields__:
        elements = getattr(response, field.name)
        if type(elements) is not list or sys.getrefcount(elements) > _REFERENCES_OF_OWNED:
            continue
        if len(elements) <= _FREED_AT_ONCE:
            for each in elements:
                if hasattr(each, "__fields__"):
                    _free(each)
        while elements:
            del elements[-_FREED_AT_ONCE:]
