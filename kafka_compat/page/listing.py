"""Filter, sort and paginate a long list. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from kafka_compat.http.routes import BadCall, natural

QUERY: Final[Mapping[str, str]] = {
    "q": "string: text that names must contain",
    "sort": "string: column to sort by; with a leading -, descending",
    "page": "integer: page of 100 rows, from 1",
}
ROWS: Final = 100

Row = dict[str, Any]


class Listing(TypedDict):
    """A page of a list: its `rows`, the `total` number of rows, and the number `found` by the filter."""

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
    """Return the page that the query selects. `columns` maps sortable columns to fields of rows, `default` is
    the default of `sort`, and `q` filters rows by the field named `name`. Raises BadCall for invalid queries.
    """
    asked = query.get("sort", "") or default
    column = asked.removeprefix("-")
    if column not in columns:
        known = ", ".join(columns)
        raise BadCall(f"sort={asked}: expected one of {known}, with a leading - for descending order")
    descending = asked.startswith("-")
    q = query.get("q", "").strip()
    wanted = q.lower()
    found = [row for row in rows if wanted in str(row[name]).lower()] if wanted else list(rows)
    # Sort by name first, so that rows with equal values are ordered by name.
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
    """Return a sort key that orders unknown values before all others."""
    return lambda row: (row[field] is not None, row[field] if row[field] is not None else 0)
