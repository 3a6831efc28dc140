"""SIGINT and SIGTERM as an event, so that a job ends between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM set the event; outside of the main thread signals stay as they are."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
