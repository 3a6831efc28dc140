"""Divide the lines of a screen among its tables. No I/O."""

from collections.abc import Sequence


def shares(needs: Sequence[int], room: int) -> list[int]:
    """Return the number of rows for each table if `room` lines are available. Tables get rows in turn, as
    long as the rows, the column titles and the lines that count hidden rows fit.
    """
    found = [0] * len(needs)
    grows = True
    while grows:
        grows = False
        for index, need in enumerate(needs):
            if found[index] < need:
                found[index] += 1
                if sum(map(_lines, found, needs)) <= room:
                    grows = True
                else:
                    found[index] -= 1
    return found


def _lines(rows: int, need: int) -> int:
    return 1 + rows + (rows < need) if rows else 0
