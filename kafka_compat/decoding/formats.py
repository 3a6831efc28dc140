"""Choose the format of a key or a value, and decode it. No I/O."""

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol

from kafka_compat.decoding.plain import NUMBERS, NotSo, hex_of, is_readable, number_of, text_of
from kafka_compat.decoding.wire_format import framed

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_INDENT: Final = "  "


def json_of(text: str) -> str:
    """Indent JSON text, keeping numbers, order and duplicate names. Raises NotSo if it is not JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise NotSo(f"not JSON: {error}") from None
    parts: list[str] = []
    depth = 0
    before = ""
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in "]}":
            depth -= 1
            if before not in "[{":
                parts.append("\n" + _INDENT * depth)
        elif before in ("[", "{", ","):
            parts.append("\n" + _INDENT * depth)
        parts.append(": " if token == ":" else token)
        if token in "[{":
            depth += 1
        before = token
    return "".join(parts)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


AUTO: Final = "auto"
SCHEMA: Final = "schema"
FORMATS: Final = (AUTO, "text", "json", "hex", "base64", *NUMBERS, SCHEMA)
"""Formats that can be requested."""


class Schema(Protocol):
    """A schema from the registry."""

    @property
    def kind(self) -> str:
        """Name of the format, as used in `Decoded.format`."""

    def read(self, content: bytes) -> str:
        """Decode a value without its header. Raises NotSo if the value does not match the schema."""


Schemas = Mapping[int, Schema | str]
"""Schemas by ID, or the reason why a schema is unavailable."""


class Decoded(NamedTuple):
    """A decoded key or value."""

    format: str
    """The actual format: one of FORMATS except `auto` and `schema`, or `null`, `empty`, `avro`, `protobuf`,
    `json-schema`.
    """
    text: str | None
    """The decoded text, or None for null."""
    size_bytes: int
    """Total size in bytes, or -1 for null."""
    schema_id: int | None = None
    problem: str | None = None
    """Reason why the value is not in the requested format, or in the format that its header indicates."""
    is_cut: bool = False
    """Whether `text` is only the beginning of the value."""


NULL: Final = Decoded("null", None, -1)
JSON_SCHEMA: Final = "json-schema"


class JsonSchema:
    """A JSON schema. Values are decoded without it, because only producers need the schema."""

    kind = JSON_SCHEMA

    def read(self, content: bytes) -> str:
        return _json(content)


def schema_ids(contents: Iterable[bytes | None]) -> set[int]:
    """Return the schema IDs in all keys and values that seem to begin with a schema header."""
    starts = (framed(content) for content in contents if content is not None)
    return {start.schema_id for start in starts if start is not None}


def decoded(content: bytes | None, asked: str, schemas: Schemas, *, size_bytes: int | None = None) -> Decoded:
    """Decode `content` in the format `asked` (one of FORMATS) or, if the content does not match this format,
    in the most likely format. `size_bytes` is the total size if `content` is truncated.
    """
    if content is None:
        return NULL
    size = len(content) if size_bytes is None else size_bytes
    is_cut = size > len(content)
    if not content:
        return Decoded("empty", "", 0)
    problem: str | None = None
    if asked in (AUTO, SCHEMA):
        found = _by_schema(content, schemas, size, is_cut)
        if found is not None and found.problem is None:
            return found
        if asked == SCHEMA:
            no_start = "it does not begin with 0 and a schema ID, as values of a schema registry do"
            problem = no_start if found is None else found.problem
        elif found is not None:
            problem = found.problem
    else:
        try:
            return Decoded(asked, _PLAIN[asked](content), size, is_cut=is_cut)
        except NotSo as error:
            problem = str(error)
    guess, text = _guessed(content, is_cut)
    if asked == AUTO and guess in NUMBERS:
        # Prefer the number: an eight-byte number that begins with a zero byte looks like a schema header.
        problem = None
    return Decoded(guess, text, size, None, problem, is_cut)


def _by_schema(content: bytes, schemas: Schemas, size: int, is_cut: bool) -> Decoded | None:
    """Decode a value by its schema. Return None if it has no schema header."""
    start = framed(content)
    if start is None or start.schema_id not in schemas:
        return None
    schema = schemas[start.schema_id]
    if isinstance(schema, str):
        return Decoded("", None, size, start.schema_id, schema)
    if is_cut:
        long = f"it has {size:,} bytes, too many to be decoded in a list: open the record by itself"
        return Decoded("", None, size, start.schema_id, long)
    try:
        return Decoded(schema.kind, schema.read(start.content), size, start.schema_id)
    except NotSo as error:
        return Decoded("", None, size, start.schema_id, str(error))


def _guessed(content: bytes, is_cut: bool) -> tuple[str, str]:
    """Return the most likely format of `content`, and the content as text in that format."""
    try:
        # Omit an incomplete last character: the content may have been cut within a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(content) if is_cut else text_of(content)
    except (NotSo, UnicodeDecodeError):
        text = None
    if text is not None and is_readable(text):
        if not is_cut and text.lstrip()[:1] in ("{", "["):
            try:
                return "json", json_of(text)
            except NotSo:
                pass
        return "text", text
    # Try only the formats of integer serializers: floating-point numbers cannot be recognized.
    for kind in ("integer", "long"):
        if len(content) == NUMBERS[kind].size:
            return kind, number_of(content, kind)
    return "hex", hex_of(content)


def _json(content: bytes) -> str:
    return json_of(text_of(content))


_PLAIN: Final[dict[str, Callable[[bytes], str]]] = {
    "text": text_of,
    "json": _json,
    "hex": hex_of,
    "base64": lambda content: base64.b64encode(content).decode(),
    **{kind: partial(number_of, kind=kind) for kind in NUMBERS},
}
