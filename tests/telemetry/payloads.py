"""OTLP payloads of client metrics."""

from __future__ import annotations

MIB = 1 << 20


def _within(*tags: int, data: bytes) -> bytes:
    for tag in reversed(tags):
        size = len(data)
        length = bytearray()
        while size > 127:
            length.append(size & 127 | 128)
            size >>= 7
        data = bytes([tag, *length, size]) + data
    return data


EMPTY = {
    "resources": b"\x0a\x00" * MIB,
    "metrics": _within(0x0A, 0x12, data=b"\x12\x00" * MIB),
    "points": _within(0x0A, 0x12, 0x12, 0x2A, data=b"\x0a\x00" * MIB),
    "attributes": _within(0x0A, 0x12, 0x12, 0x2A, 0x0A, data=b"\x3a\x00" * MIB),
}
"""A million empty messages of two bytes each."""
