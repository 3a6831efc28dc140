"""Decide whether a record matches the criteria of a search. No I/O.

Criteria are bytes, so that records can be excluded without decoding them, and batches that lack the bytes can
be skipped entirely.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_compat.storage.records.records import Record

CONTAINS: Final = "contains"
IS: Final = "is"
STARTS: Final = "starts"
NULL: Final = "null"
HOW: Final = (CONTAINS, IS, STARTS, NULL)


class Needle(NamedTuple):
    """A criterion for a key, a value or a header: a comparison from HOW, and bytes (unused for NULL)."""

    how: str
    content: bytes = b""

    def fits(self, content: bytes | None) -> bool:
        if content is None or self.how == NULL:
            return content is None and self.how == NULL
        if self.how == IS:
            return content == self.content
        return content.startswith(self.content) if self.how == STARTS else self.content in content


class Match(NamedTuple):
    """All criteria of a search; None matches every value. The time range is [from_ms, to_ms)."""

    key: Needle | None = None
    value: Needle | None = None
    header: str | None = None
    """Name of a header that must be present."""
    header_value: Needle | None = None
    """Criterion for the value of the header `header`, or of any header if `header` is None."""
    from_ms: int | None = None
    to_ms: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether every record matches."""
        return self == EVERY

    def rare(self) -> list[bytes]:
        """Return byte strings that every batch with a matching record contains."""
        needles = (self.key, self.value, self.header_value)
        rare = [each.content for each in needles if each is not None and each.content]
        return [*rare, self.header.encode(errors="replace")] if self.header else rare

    def test(self) -> Callable[[Record], bool]:
        """Return a function that tests whether a record matches."""
        key, value, header, header_value, from_ms, to_ms = self

        def fits(record: Record) -> bool:
            return (
                (from_ms is None or record.timestamp >= from_ms)
                and (to_ms is None or record.timestamp < to_ms)
                and (key is None or key.fits(record.key))
                and (value is None or value.fits(record.value))
                and (
                    (header is None and header_value is None)
                    or any(
                        (header is None or name == header)
                        and (header_value is None or header_value.fits(content))
                        for name, content in record.headers
                    )
                )
            )

        return fits


EVERY: Final = Match()
"""Criteria that match every record."""
