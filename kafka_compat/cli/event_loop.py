"""The event loop that a broker serves on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("kafka_compat")


def run(serving: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it is installed (the extra `fast`), which takes a sixth of the CPU time of small
    requests; else on asyncio's own loop.
    """
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        log.info("Serving on the loop of %s", type(runner.get_loop()).__module__)
        return runner.run(serving)
