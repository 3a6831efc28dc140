"""Corruption of serialized bytes, for tests of parsers."""

from __future__ import annotations

import random


def damage(body: bytes, kind: str, position: int, chance: random.Random) -> bytes:
    """Return `body` with one change of this kind at `position`. Return `body` unchanged for an unknown
    kind.
    """
    damaged = bytearray(body)
    if kind == "byte":
        damaged[position] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
    elif kind == "bit":
        damaged[position] ^= 1 << chance.randrange(8)
    elif kind == "drop":
        del damaged[position]
    elif kind == "insert":
        damaged.insert(position, chance.choice([0, 1, 128]))
    elif kind == "cut":
        del damaged[position:]
    return bytes(damaged)
