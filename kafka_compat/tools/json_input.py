"""Parse JSON files given to commands, with Kafka's error messages."""

import json
from typing import Any, Final

from kafka_compat.tools.failure import Failure, fits

_MAPPING: Final = "com.fasterxml.jackson.databind.JsonMappingException"
_NAMES: Final = {str: "String", int: "Integer"}


def admin_error(message: str) -> Failure:
    """Return the Failure for invalid input to an admin operation."""
    return Failure("org.apache.kafka.tools.AdminOperationException", message)


def read_text(path: str) -> str:
    """Read a text file. Raises Failure if the file cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        missing = isinstance(error, FileNotFoundError)
        kind = "java.nio.file.NoSuchFileException" if missing else "java.io.IOException"
        cause = Failure(kind, path if missing else str(error))
        raise Failure("java.io.IOException", f"Unable to read file {path}", cause) from None


def parsed(text: str) -> Any:
    """Return the value of a JSON text, or None if the text is invalid."""
    try:
        value = json.loads(text)
        # Lone surrogates are valid in JSON, but no text of a request.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def first_version(value: Any) -> dict[str, Any]:
    """Return the fields of a JSON object in version 1 of its format. Raises Failure for other versions."""
    top = fields(value)
    version = field(top, "version", int) if "version" in top else 1
    if version != 1:
        raise admin_error(f"Not supported version field value {version}")
    return top


def fields(value: Any) -> dict[str, Any]:
    """Return the fields of a JSON object. Raises Failure if the value is not an object."""
    if not isinstance(value, dict):
        raise Failure(_MAPPING, f"Expected JSON object, received {json.dumps(value)}")
    return value


def items(value: Any) -> list[Any]:
    """Return the items of a JSON array. Raises Failure if the value is not an array."""
    if not isinstance(value, list):
        raise Failure(_MAPPING, f"Expected JSON array, received {json.dumps(value)}")
    return value


def field(value: dict[str, Any], name: str, kind: type, kind_name: str = "") -> Any:
    """Return a field's value. Raises Failure if the field is missing or its value is not a `kind`."""
    if name not in value:
        raise Failure(_MAPPING, f"No such field exists: `{name}`")
    found = value[name]
    bits = 64 if kind_name == "Long" else 32
    if (
        not isinstance(found, kind)
        or isinstance(found, bool)
        or (isinstance(found, int) and not fits(found, bits))
    ):
        raise Failure(_MAPPING, f"Expected `{kind_name or _NAMES[kind]}` value, received {json.dumps(found)}")
    return found
