"""The elements of an array that are encoded before the message, because many messages contain them."""

from typing import Any


class EncodedArray(list[Any]):
    """Value of an array field whose elements are already encoded. As a list, it is empty.

    `parts` contains the bytes of the array, beginning with the number of elements. `codes` maps each error
    code in the elements to its number of occurrences, and `end_bytes` is the encoded size of the message's
    fields after the array.
    """

    __slots__ = ("codes", "end_bytes", "parts")

    def __init__(self, parts: list[bytes], codes: dict[int, int], end_bytes: int) -> None:
        self.parts = parts
        self.codes = codes
        self.end_bytes = end_bytes
