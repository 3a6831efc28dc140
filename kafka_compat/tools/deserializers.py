"""Kafka's deserializers, by class name. They convert bytes to the text of Java's `toString`."""

import struct
from collections.abc import Callable
from typing import Final

from kafka_compat.tools.failure import Failure

Deserializer = Callable[[bytes], str]

_PACKAGE: Final = "org.apache.kafka.common.serialization."


def _number(code: str, kind: str, show: Callable[[float], str]) -> Deserializer:
    packed = struct.Struct(code)

    def read(content: bytes) -> str:
        if len(content) != packed.size:
            text = f"{kind}Deserializer expects {packed.size} bytes"
            raise Failure("org.apache.kafka.common.errors.SerializationException", text)
        (value,) = packed.unpack(content)
        return show(value)

    return read


def _whole(value: float) -> str:
    return str(value)


def _boolean(content: bytes) -> str:
    if len(content) != 1 or content[0] > 1:
        text = (
            "BooleanDeserializer expects 1 byte"
            if len(content) != 1
            else f"Unexpected byte received by BooleanDeserializer: {content[0]}"
        )
        raise Failure("org.apache.kafka.common.errors.SerializationException", text)
    return "true" if content[0] else "false"


def _uuid(content: bytes) -> str:
    from uuid import UUID

    text = content.decode(errors="replace")
    try:
        return str(UUID(text))
    except ValueError:
        kind = "org.apache.kafka.common.errors.SerializationException"
        cause = Failure("java.lang.IllegalArgumentException", f"Invalid UUID string: {text}")
        raise Failure(kind, "Error parsing data into UUID", cause) from None


def _bytes(content: bytes) -> str:
    """Format bytes like org.apache.kafka.common.utils.Bytes.toString."""
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02X}" for byte in content)


def java_double(value: float) -> str:
    """Format a number like Java's Double.toString."""
    return _java_float(value, repr(value))


def java_float(value: float) -> str:
    """Format a number like Java's Float.toString, with the precision of a float."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return _java_float(value, repr(float(text)))
    return _java_float(value, repr(value))


def _java_float(value: float, shortest: str) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        from decimal import Decimal

        text = format(Decimal(shortest), "f")
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = f"{float(shortest):.16e}".partition("e")
    for digits in range(1, 17):
        text = f"{float(shortest):.{digits}e}"
        if float(text) == float(shortest):
            mantissa, _, exponent = text.partition("e")
            break
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0E{int(exponent)}" if mantissa.endswith(".") else f"{mantissa}E{int(exponent)}"


_KNOWN: Final[dict[str, Deserializer]] = {
    "String": lambda content: content.decode(errors="replace"),
    "Integer": _number(">i", "Integer", _whole),
    "Long": _number(">q", "Long", _whole),
    "Short": _number(">h", "Short", _whole),
    "Double": _number(">d", "Double", java_double),
    "Float": _number(">f", "Float", java_float),
    "Boolean": _boolean,
    "UUID": _uuid,
    "Bytes": _bytes,
    "Void": lambda content: "null",
}


def named(name: str) -> Deserializer | None:
    """Return the deserializer with this class name, or None if the class is unknown."""
    if not name.startswith(_PACKAGE):
        return None
    return _KNOWN.get(name.removeprefix(_PACKAGE).removesuffix("Deserializer"))
