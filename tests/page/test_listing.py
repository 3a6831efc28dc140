"""Long lists: filtering, sorting, and pages of one hundred rows."""

from __future__ import annotations

import pytest

from kafka_compat.http.routes import BadCall
from kafka_compat.page.listing import ROWS, Listing, listed

COLUMNS = {"name": "name", "size": "size_bytes"}
SIZES = [("b", 2), ("A", 2), ("c", None), ("d", 10), ("e", 1)]


def some(**query: str) -> Listing:
    return listed([{"name": name, "size_bytes": size} for name, size in SIZES], query, COLUMNS, "name")


def names(found: Listing) -> str:
    return "".join(row["name"] for row in found["rows"])


@pytest.mark.parametrize(
    ("sort", "order"),
    [("name", "Abcde"), ("-name", "edcbA"), ("size", "ceAbd"), ("-size", "dAbec"), ("", "Abcde")],
)
def test_a_list_is_sorted_by_any_column_in_either_direction(sort: str, order: str) -> None:
    found = some(sort=sort)
    assert names(found) == order
    assert found["descending"] is sort.startswith("-")


def test_a_list_is_filtered_by_part_of_a_name_ignoring_case() -> None:
    found = some(q=" a ")
    assert (names(found), found["found"], found["total"], found["q"]) == ("A", 1, 5, "a")
    assert some(q="x")["rows"] == []


@pytest.mark.parametrize(("page", "first", "number"), [("1", 0, 1), ("3", 2 * ROWS, 3), ("99", 2 * ROWS, 3)])
def test_a_list_is_divided_into_pages(page: str, first: int, number: int) -> None:
    rows = [{"name": each, "size_bytes": 0} for each in range(2 * ROWS + 1)]
    found = listed(rows, {"page": page}, COLUMNS, "name")
    assert (found["rows"][0]["name"], found["page"], found["pages"]) == (first, number, 3)


@pytest.mark.parametrize("query", [{"sort": "weight"}, {"sort": "--size"}, {"page": "-1"}, {"page": "x"}])
def test_invalid_queries_are_rejected(query: dict[str, str]) -> None:
    with pytest.raises(BadCall, match=r"expected"):
        some(**query)
