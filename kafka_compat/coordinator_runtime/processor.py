"""The processor, which the broker may share with its clients."""

from __future__ import annotations

import os


def offer_core() -> None:
    """Let a thread that waits for this core run first, if there is one.

    For work that goes on after an answer has left. On a machine with few cores the client's threads, which
    the answer wakes one after the other, may be put behind the broker's; Linux would leave them there until
    the broker sleeps or has had its slice of some milliseconds. Where nobody waits it costs a microsecond;
    where others keep every core busy it may cost such a slice, so it is for a few places only.
    """
    _yield()


_yield = getattr(os, "sched_yield", lambda: None)
