"""The cursor of a search: its position as a short text for links. No I/O."""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

_PART: Final = re.compile(r"(\d{1,10}):(\d{1,19})-(\d{1,19})")
_TEXT_BYTES_MAX: Final = 1 << 20


class BadCursor(ValueError):
    """Raised for an invalid cursor."""


class Cursor(NamedTuple):
    """The remaining offsets [first, end) of each partition, and their number at the start of the search."""

    left: Mapping[int, tuple[int, int]]
    total: int

    @property
    def done(self) -> float:
        """Progress of the search, from 0 to 1."""
        left = sum(end - first for first, end in self.left.values())
        return 1.0 if self.total <= 0 else max(0.0, 1 - left / self.total)

    def text(self) -> str:
        """Return the cursor as URL-safe text."""
        parts = (f"{partition}:{first}-{end}" for partition, (first, end) in self.left.items())
        packed = zlib.compress(f"{self.total};{','.join(parts)}".encode(), 9)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def cursor_of(text: str) -> Cursor:
    """Parse the text of a cursor. Raises BadCursor if the text is invalid."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacked = zlib.decompressobj().decompress(packed, _TEXT_BYTES_MAX).decode("ascii")
        total, _, parts = unpacked.partition(";")
        left: dict[int, tuple[int, int]] = {}
        for part in parts.split(","):
            found = _PART.fullmatch(part)
            if found is None:
                raise BadCursor("it contains no offsets")
            partition, first, end = map(int, found.groups())
            left[partition] = (first, end)
        return Cursor(left, int(total))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise BadCursor(f"cursor={text[:40]}: not a cursor of this search: {error}") from None
