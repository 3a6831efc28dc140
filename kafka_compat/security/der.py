"""Reader of DER (X.690), limited to what key stores and certificate names require. No I/O."""

from collections.abc import Iterator
from typing import Final, NamedTuple

INTEGER: Final = 0x02
SEQUENCE: Final = 0x30
SET: Final = 0x31


class Element(NamedTuple):
    """A DER element. `whole` includes the tag and the length; `content` does not."""

    tag: int
    content: bytes
    whole: bytes


def first(data: bytes, offset: int = 0) -> Element:
    """Return the element at `offset`. Raises ValueError if it is invalid."""
    try:
        tag, length, start = data[offset], data[offset + 1], offset + 2
        if tag & 0x1F == 0x1F:
            raise ValueError("DER: a tag of more than one byte")
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4:
                raise ValueError("DER: an unsupported form of length")
            length, start = int.from_bytes(data[start : start + size]), start + size
    except IndexError:
        raise ValueError("DER: the data is truncated") from None
    end = start + length
    if end > len(data):
        raise ValueError("DER: the data is truncated")
    return Element(tag, data[start:end], data[offset:end])


def elements(content: bytes) -> Iterator[Element]:
    """Yield the consecutive elements in `content`. Raises ValueError at the first invalid element."""
    offset = 0
    while offset < len(content):
        element = first(content, offset)
        offset += len(element.whole)
        yield element


def sequence(data: bytes) -> list[Element]:
    """Return the elements of the sequence at the start of `data`. Raises ValueError if it is invalid."""
    outer = first(data)
    if outer.tag != SEQUENCE:
        raise ValueError("DER: not a sequence")
    return list(elements(outer.content))


def dotted(oid: bytes) -> str:
    """Return an object identifier as text, such as 2.5.4.3. Raises ValueError if it is invalid."""
    numbers: list[int] = []
    number, begun = 0, False
    for byte in oid:
        number, begun = number << 7 | byte & 0x7F, True
        if not byte & 0x80:
            numbers.append(number)
            number, begun = 0, False
    if begun or not numbers:
        raise ValueError("DER: an invalid object identifier")
    head = min(numbers[0] // 40, 2)
    return ".".join(map(str, (head, numbers[0] - 40 * head, *numbers[1:])))
