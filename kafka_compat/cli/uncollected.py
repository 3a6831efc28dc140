"""Imports without garbage collection."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Turn off garbage collection within the `with` block, which imports modules. The modules' objects live
    as long as the process, and scanning them would take a twentieth of the startup time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
