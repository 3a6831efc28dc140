"""Programs that draw on a terminal (kaskade), and the final content of the screen."""

from __future__ import annotations

import fcntl
import functools
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.consoles.sides import Side, Sides
from tests.support.programs import program

_ROWS, _COLUMNS = 120, 200
_STILL_S, _LATEST_S = 2.0, 40.0
_KEYS = {"enter": b"\r", "right": b"\x1b[C", "down": b"\x1b[B"}
_WAYS = (
    "admin",
    "admin enter",
    "admin enter right",
    "admin enter right right",
    "admin enter right right right",
    "admin enter right right right right",
    "admin down down enter right right right",
    "consumer -t beta --earliest",
    "consumer -t cut --earliest",
    "consumer -t ledger --earliest",
)
"""Modes of kaskade with their options, and the keys to press."""
_MEANT = (r"Kaskade v", r"^\[(Admin|Consumer) Mode ")
"""The header lines, which contain the address, the start time and, for consumers, the group."""


def kaskade_differences(sides: Sides, folder: Path) -> list[str]:
    found = []
    for way in _WAYS:
        show = functools.partial(_kaskade, way.split(), folder)
        found += sides.differences(f"kaskade {way}", show, _MEANT)
    return found


def _kaskade(words: Sequence[str], folder: Path, side: Side) -> str:
    keys = [word for word in words if word in _KEYS]
    options = [word for word in words[1:] if word not in _KEYS]
    home = folder / side.name
    home.mkdir(exist_ok=True)
    command = [program("kaskade"), words[0], "-b", side.address, *options]
    return screen(command, keys, {"HOME": str(home)})


def screen(command: Sequence[str], keys: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the content of the terminal of `command` after the last of `keys` was pressed and drawing
    stopped, without frames.
    """
    pyte = pytest.importorskip("pyte", reason="pyte, a terminal, is not installed")
    shown = pyte.Screen(_COLUMNS, _ROWS)
    stream = pyte.ByteStream(shown)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    child = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        _read_until_still(ours, stream.feed)
        for key in keys:
            os.write(ours, _KEYS[key])
            _read_until_still(ours, stream.feed)
    finally:
        child.terminate()
        child.wait(20)
        os.close(ours)
    frames = str.maketrans(dict.fromkeys("│┌┐└┘─━╸╺▏▎▁▂▃▄▅▆▇█", " "))
    return "\n".join(line.translate(frames).strip() for line in shown.display)


def _read_until_still(terminal: int, draw: Callable[[bytes], None]) -> None:
    """Read until something was drawn and drawing then stopped."""
    began_s = last_s = time.monotonic()
    drew = False
    while time.monotonic() - began_s < _LATEST_S and not (drew and time.monotonic() - last_s > _STILL_S):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                draw(os.read(terminal, 1 << 16))
            except OSError:
                return
            drew, last_s = True, time.monotonic()
