"""Filter, sort and paginate a long list. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from kafka_compat.http.routes import BadCall, natural

QUERY: Final[Mapping[str, str]] = {
    "q": "string: a part of the name",
    "sort": "string: the column, with - in front of it the greatest first",
    "page": "integer: which hundred, from 1 on",
}
"""The parameters of a list."""
ROWS: Final = 100

Row = dict[str, Any]


class Listing(TypedDict):
    """`total` there are, `found` are those that the filter leaves, `rows` are those of this page."""

    rows: list[Row]
    total: int
    found: int
    page: int
    pages: int
    q: str
    sort: str
    descending: bool


def listed(
    rows: Sequence[Row],
    query: Mapping[str, str],
    columns: Mapping[str, str],
    default: str,
    name: str = "name",
) -> Listing:
    """`columns` are those by which a list can be sorted, each with the field of the rows that it sorts by;
    `default` is what `sort` is where nobody says; `name` is the field that `q` is a part of. BadCall.
    """
    asked = query.get("sort", "") or default
    column = asked.removeprefix("-")
    if column not in columns:
        known = ", ".join(columns)
        raise BadCall(f"sort={asked}: expected one of {known}, with - in front of it the greatest first")
    descending = asked.startswith("-")
    q = query.get("q", "").strip()
    wanted = q.lower()
    found = [row for row in rows if wanted in str(row[name]).lower()] if wanted else list(rows)
    # What is alike in the column is in the order of the names.
    found.sort(key=_order(name))
    found.sort(key=_order(columns[column]), reverse=descending)
    pages = max(1, -(-len(found) // ROWS))
    text = query.get("page", "")
    page = min(max(1, natural(text, "page") if text else 1), pages)
    begin = (page - 1) * ROWS
    end = begin + ROWS
    return Listing(
        rows=found[begin:end],
        total=len(rows),
        found=len(found),
        page=page,
        pages=pages,
        q=q,
        sort=column,
        descending=descending,
    )


def _order(field: str) -> Callable[[Row], Any]:
    """What is not known comes after what is the least."""
    return lambda row: (row[field] is not None, row[field] if row[field] is not None else 0)
