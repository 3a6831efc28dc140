"""JSON payloads of nodes, encoded as in Kafka. All errors contain the node's path.

As in Kafka, unknown fields are ignored, null is equivalent to a missing field, and known fields are read from
nodes of newer versions.
"""

import json
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def encode_json(values: Mapping[str, Any]) -> bytes:
    """Encode values as JSON without spaces, in the order of the keys in `values`."""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def is_number(text: str, highest: int) -> bool:
    """Whether a string is a decimal number no greater than `highest`."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(highest)) and int(text) <= highest


class NodeObject:
    """A JSON object in a node. All methods that read a field raise MalformedNode if it is invalid."""

    __slots__ = ("_path", "_values", "_where")

    def __init__(self, path: str, values: Mapping[str, Any], where: str = "") -> None:
        self._path = path
        self._values = values
        self._where = where

    @classmethod
    def parse(cls, path: str, data: bytes | None) -> "NodeObject":
        """Parse the payload of the node at `path`. Raises MalformedNode if it is not a JSON object."""
        if not data:
            raise MalformedNode(path, "the node is empty")
        try:
            values = json.loads(data.decode())
        except UnicodeDecodeError as error:
            raise MalformedNode(path, f"{_shown(data)} is not UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise MalformedNode(path, f"{_shown(data)} is not JSON") from error
        if not isinstance(values, dict):
            raise MalformedNode(path, f"{_shown(data)} is not a JSON object")
        return cls(path, values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def wrong(self, name: str, problem: str) -> MalformedNode:
        """Return the exception to raise for an invalid field."""
        return MalformedNode(self._path, f"{self._where}{name} {problem}")

    def has(self, name: str) -> bool:
        """Whether the field exists and is not null."""
        return self._values.get(name) is not None

    def integer(self, name: str, default: int | None = None, *, low: int = 0, high: int = INT32_MAX) -> int:
        """Read an integer from `low` to `high`."""
        value = self._field(name, default)
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(name, f"is {_shown(value)}, not a whole number from {low} to {high}")
        return value

    def integer_text(self, name: str, *, high: int = INT64_MAX) -> int:
        """Read an integer from 0 to `high` that is stored as a string or as a number."""
        value = self._field(name, None)
        if isinstance(value, str) and is_number(value, high):
            value = int(value)
        if type(value) is not int or not 0 <= value <= high:
            raise self.wrong(name, f"is {_shown(value)}, not a number from 0 to {high}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Read a string. A string that cannot be encoded as UTF-8 is invalid."""
        return self._text(name, self._field(name, default))

    def texts(self, name: str) -> list[str]:
        """Read a list of strings. A missing field is an empty list."""
        return [self._text(name, item) for item in self._list(name, [])]

    def brokers(self, name: str) -> tuple[int, ...]:
        """Read a list of distinct broker IDs."""
        values = self._list(name, None)
        for value in values:
            if type(value) is not int or not 0 <= value <= INT32_MAX:
                raise self.wrong(name, f"contains {_shown(value)}, which is not a broker ID")
        if len(set(values)) < len(values):
            raise self.wrong(name, f"is {_shown(values)}, which contains a broker twice")
        return tuple(values)

    def object(self, name: str) -> "NodeObject":
        """Read a nested object. A missing field is an empty object."""
        value = self._field(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, f"is {_shown(value)}, not an object")
        return NodeObject(self._path, value, f"{self._where}{name}.")

    def objects(self, name: str) -> "list[NodeObject]":
        """Read a list of objects."""
        items = self._list(name, None)
        for item in items:
            if not isinstance(item, dict):
                raise self.wrong(name, f"contains {_shown(item)}, which is not an object")
        return [NodeObject(self._path, item, f"{self._where}{name}: ") for item in items]

    def _field(self, name: str, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise self.wrong(name, "is missing")
            return default
        return value

    def _list(self, name: str, default: list[Any] | None) -> list[Any]:
        value = self._field(name, default)
        if not isinstance(value, list):
            raise self.wrong(name, f"is {_shown(value)}, not a list")
        return value

    def _text(self, name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.wrong(name, f"is {_shown(value)}, not a string")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.wrong(name, f"is {_shown(value)}, which is not valid Unicode") from error
        return value


def _shown(value: object) -> str:
    return _REPR.repr(value)
