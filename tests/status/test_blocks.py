"""Lines of block characters for terminals."""

from __future__ import annotations

import pytest

from kafka_compat.status.blocks import blocks


@pytest.mark.parametrize(
    ("values", "width", "top", "wanted"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 9, 8, "▁▂▃▄▅▆▇██"),
        ([0, 8, 0, 0], 2, 8, "█▁"),
        ([None, None, 4, None], 2, 8, " ▅"),
        ([0, 0], 2, 0, "▁▁"),
        ([9], 1, 8, "█"),
        ([1, 8], 4, 8, "▂▂██"),
        ([], 3, 8, "   "),
    ],
)
def test_each_character_shows_the_largest_of_its_values(
    values: list[float | None], width: int, top: float, wanted: str
) -> None:
    assert blocks(values, width, top) == wanted
