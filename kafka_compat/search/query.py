"""Parse the parameters of a link into the criteria of a search. No I/O."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kafka_compat.decoding.formats import AUTO, FORMATS
from kafka_compat.decoding.plain import FORMATS as NEEDLE_FORMATS
from kafka_compat.decoding.plain import NotSo, bytes_of
from kafka_compat.search.cursor import BadCursor, Cursor, cursor_of
from kafka_compat.search.matching import CONTAINS, HOW, NULL, Match, Needle

LIMIT: Final = 50
LIMIT_MAX: Final = 500
PARTITIONS_MAX: Final = 256
"""Maximum number of partitions in one search, because links contain the remaining range of each."""
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"
_OFFSET_MAX: Final = (1 << 63) - 1
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_TIMES: Final = (
    re.compile(r"-?\d{1,15}"),
    re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d:?\d\d)?"),
)

PARAMETERS: Final = {
    "partitions": "string: partitions, such as 0,3-5 (default: all)",
    "order": "string: newest or oldest first",
    "limit": f"integer: maximum number of records, up to {LIMIT_MAX}",
    "from_offset": "integer: first offset, in each partition",
    "to_offset": "integer: end offset, exclusive",
    "from": "string: start time, such as 2026-01-31T12:00:00Z (UTC unless it has an offset) "
    "or in milliseconds since 1970",
    "to": "string: end time, exclusive",
    "key": "string: text to find in keys",
    "key_how": "string: comparison: contains, is, starts (starts with), or null",
    "key_as": f"string: format of `key`: {', '.join(NEEDLE_FORMATS)}",
    "value": "string: text to find in values",
    "value_how": "string: comparison, with the values of key_how",
    "value_as": "string: format of `value`, with the values of key_as",
    "header": "string: name of a header that records must have",
    "header_value": "string: text to find in that header, or in any header",
    "header_how": "string: comparison, with the values of key_how",
    "header_as": "string: format of `header_value`, with the values of key_as",
    "isolation": "string: read_committed, or read_uncommitted: include records of open or aborted "
    "transactions",
    "show_key": f"string: format of keys in the response: {', '.join(FORMATS)}",
    "show_value": "string: format of values in the response, with the values of show_key",
    "cursor": "string: cursor of the previous response, to continue; all other parameters must be the same",
}
"""The parameters of a search, with their types and meanings."""


class BadQuery(ValueError):
    """Raised for an invalid parameter. The text contains the parameter's name and the valid values."""


class Query(NamedTuple):
    """The parsed parameters. `partitions` is None for all partitions. Offsets and times may be None."""

    given: Mapping[str, str]
    """The parameters that are set, except the cursor."""
    partitions: tuple[int, ...] | None
    newest: bool
    limit: int
    first: int | None
    end: int | None
    match: Match
    committed: bool
    show_key: str
    show_value: str
    cursor: Cursor | None


def query_of(parameters: Mapping[str, str]) -> Query:
    """Parse the parameters of a search. Raises BadQuery if a parameter is invalid."""
    given = {name: value for name, value in parameters.items() if value and name in PARAMETERS}
    order = _one_of(given, "order", (NEWEST, OLDEST), NEWEST)
    limit = _natural(given, "limit")
    if limit is not None and not 1 <= limit <= LIMIT_MAX:
        raise BadQuery(f"limit={limit}: expected a whole number from 1 to {LIMIT_MAX}")
    match = Match(
        _needle(given, "key", "key"),
        _needle(given, "value", "value"),
        given.get("header"),
        _needle(given, "header_value", "header"),
        _time_ms(given, "from"),
        _time_ms(given, "to"),
    )
    cursor = None
    if "cursor" in given:
        try:
            cursor = cursor_of(given.pop("cursor"))
        except BadCursor as error:
            raise BadQuery(str(error)) from None
    return Query(
        given,
        partitions_in(given["partitions"]) if "partitions" in given else None,
        order == NEWEST,
        LIMIT if limit is None else limit,
        _natural(given, "from_offset"),
        _natural(given, "to_offset"),
        match,
        _one_of(given, "isolation", (COMMITTED, UNCOMMITTED), COMMITTED) == COMMITTED,
        _one_of(given, "show_key", FORMATS, AUTO),
        _one_of(given, "show_value", FORMATS, AUTO),
        cursor,
    )


def partitions_in(text: str) -> tuple[int, ...]:
    """Parse partitions such as 0,3-5. Raises BadQuery if the text is malformed or lists too many."""
    found: set[int] = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        matched = _RANGE.fullmatch(part)
        if matched is None:
            raise BadQuery(f"partitions={text[:100]}: {part[:20]!r} is not a number or range, as in 0,3-5")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if last - first >= PARTITIONS_MAX:
            raise BadQuery(f"partitions={text[:100]}: at most {PARTITIONS_MAX} can be searched at once")
        found.update(range(first, last + 1))
        if len(found) > PARTITIONS_MAX:
            raise BadQuery(f"partitions={text[:100]}: at most {PARTITIONS_MAX} can be searched at once")
    return tuple(sorted(found))


def chosen(query: Query, known: Iterable[int]) -> list[int]:
    """Return the partitions to search, out of `known`. Raises BadQuery if they are unknown or too many."""
    there = sorted(known)
    if query.partitions is None:
        if len(there) > PARTITIONS_MAX:
            raise BadQuery(
                f"the topic has {len(there):,} partitions, but at most {PARTITIONS_MAX} can be searched at "
                f"once: select some, such as partitions=0-{PARTITIONS_MAX - 1}"
            )
        return there
    missing = sorted(set(query.partitions) - set(there))
    if missing:
        raise BadQuery(f"partitions: the topic has no partition {missing[0]}; they are 0 to {there[-1]}")
    return list(query.partitions)


def time_ms_of(text: str, name: str) -> int:
    """Parse a time parameter into milliseconds since 1970. Raises BadQuery if the text is malformed."""
    number, moment = _TIMES
    if number.fullmatch(text):
        return int(text)
    if moment.fullmatch(text):
        try:
            found = datetime.fromisoformat(text)
            known = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
            return int(known.timestamp()) * 1000 + known.microsecond // 1000
        except ValueError:
            pass
    raise BadQuery(
        f"{name}={text[:40]}: expected a time, such as 2026-01-31T12:00:00Z, or milliseconds since 1970"
    )


def _time_ms(given: Mapping[str, str], name: str) -> int | None:
    return time_ms_of(given[name], name) if name in given else None


def _natural(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > _OFFSET_MAX:
        raise BadQuery(f"{name}={text[:40]}: expected a whole number of at least 0")
    return int(text)


def _one_of(given: Mapping[str, str], name: str, known: tuple[str, ...], default: str) -> str:
    value = given.get(name, default)
    if value not in known:
        raise BadQuery(f"{name}={value[:40]}: expected one of {', '.join(known)}")
    return value


def _needle(given: Mapping[str, str], name: str, prefix: str) -> Needle | None:
    how = _one_of(given, f"{prefix}_how", HOW, CONTAINS)
    form = _one_of(given, f"{prefix}_as", NEEDLE_FORMATS, NEEDLE_FORMATS[0])
    if how == NULL:
        return Needle(NULL)
    if name not in given:
        return None
    try:
        return Needle(how, bytes_of(given[name], form))
    except NotSo as error:
        raise BadQuery(f"{name}={given[name][:40]}: {error}") from None
