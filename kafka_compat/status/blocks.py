"""Draw a line of values with block characters, for terminals. No I/O."""

from collections.abc import Sequence
from typing import Final

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_UNKNOWN: Final = " "


def blocks(values: Sequence[float | None], width: int, top: float) -> str:
    """Return `width` characters, each of which shows the largest of its share of the values: from the lowest
    block for 0 to the full block for `top`. Where no value is known, the character is a space.
    """
    count = len(values)
    return "".join(
        _block(values[at * count // width : max((at + 1) * count // width, at * count // width + 1)], top)
        for at in range(width)
    )


def _block(values: Sequence[float | None], top: float) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return _UNKNOWN
    if top <= 0:
        return _BLOCKS[0]
    share = min(max(known) / top, 1.0)
    return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]
