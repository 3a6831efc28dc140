"""Records out of lines, as Kafka's LineMessageReader makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.tools.failure import Failure

if TYPE_CHECKING:
    from kafka_compat.storage.records.records import Header

_NAMES: Final = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}


class ReadRecord(NamedTuple):
    """What a line says."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


class LineReader:
    """One for all lines, which it counts."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises Failure for properties that contradict each other."""
        given = {name: properties.get(name, default) for name, default in _NAMES.items()}
        self._parse_key = _is_true(properties, "parse.key")
        self._parse_headers = _is_true(properties, "parse.headers")
        self._ignore_error = _is_true(properties, "ignore.error")
        self._key_separator = given["key.separator"]
        self._headers_delimiter = given["headers.delimiter"]
        self._headers_separator = given["headers.separator"]
        self._headers_key_separator = given["headers.key.separator"]
        self._null_marker = properties.get("null.marker")
        self._line_number = 0
        for first, second in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ):
            if given[first] == given[second]:
                raise _refused(f"{first} and {second} may not be equal")
        for name in ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator"):
            if given[name] == self._null_marker:
                raise _refused(f"null.marker and {name} may not be equal")

    def record(self, line: str) -> ReadRecord:
        """Raises Failure for a line that lacks what it must have."""
        self._line_number += 1
        headers, position = self._part(
            self._parse_headers, line, 0, self._headers_delimiter, "headers delimiter"
        )
        key, position = self._part(self._parse_key, line, position, self._key_separator, "key separator")
        found: list[Header] = []
        if headers is not None and headers != self._null_marker:
            found = list(self._headers(headers))
        return ReadRecord(self._bytes(key), self._bytes(line[position:]), found)

    def _part(
        self, enabled: bool, line: str, start: int, separator: str, name: str
    ) -> tuple[str | None, int]:
        """What is before the next separator, and where the rest begins."""
        if not enabled:
            return None, start
        end = line.find(separator, start)
        if end >= 0:
            return line[start:end], end + len(separator)
        if self._ignore_error:
            return None, start
        raise _refused(f"No {name} found on line number {self._line_number}: '{line}'")

    def _headers(self, text: str) -> Iterator[Header]:
        pairs = re.split(self._headers_separator, text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        for pair in pairs:
            name, separator, value = pair.partition(self._headers_key_separator)
            if not separator:
                if not self._ignore_error:
                    where = f"'{pair}' on line number {self._line_number}"
                    raise _refused(f"No header key separator found in pair {where}")
                yield pair, None
            elif name == self._null_marker:
                raise _refused(
                    f"Header keys should not be equal to the null marker '{self._null_marker}' as they can't "
                    "be null"
                )
            else:
                yield name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text.encode()


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"


def _refused(message: str) -> Failure:
    return Failure("org.apache.kafka.common.KafkaException", message)
