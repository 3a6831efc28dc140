"""Generator of a decoder and an encoder for each message class and version, as executable Python source.

The generated code is fast. A single prebuilt Struct reads and writes adjacent fixed-size values together with
the length or count that follows them; one-byte varints are handled inline; nested structs are nested loops of
one function; objects are created without `__init__`. The source code is registered in linecache for
tracebacks. `kafka_compat.protocol.interpreter` is the same codec without optimizations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

from kafka_compat.protocol.buffers import Records
from kafka_compat.protocol.decoder_source import DecoderSource
from kafka_compat.protocol.encoder_source import EncoderSource, FrameSource
from kafka_compat.protocol.schema import Message, schema_of

Decoder: TypeAlias = Callable[[bytes | memoryview, int, int], tuple[Any, int]]
Encoder: TypeAlias = Callable[[Any, Callable[[Records], None], Callable[[Records], None], int], None]
Framer: TypeAlias = Callable[[Any, int, int], list[Records]]


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """Compile a function `decode(buffer, position, elements_max) -> (message, position after it)`.

    The function raises struct.error, IndexError or ValueError for invalid bytes. It raises TooLong before it
    processes more than `elements_max` array elements; 32 numbers, or a KiB of a bytes field, count as one
    element.
    """
    generator = DecoderSource(version, version in schema_of(cls).flexible)
    return cast(Decoder, generator.compile(cls, f"decode {cls.__name__} v{version}"))


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """Compile a function `encode(message, write, write_records, elements_max)`.

    The function passes each part, in order, to `write` or `write_records`. It raises TooLong if the message
    has more than `elements_max` array elements, possibly after some parts were written.
    """
    generator = EncoderSource(version, version in schema_of(cls).flexible)
    return cast(Encoder, generator.compile(cls, f"encode {cls.__name__} v{version}"))


@cache
def compile_framer(cls: type[Message], version: int) -> Framer:
    """Compile a function `frame(message, correlation_id, elements_max)` that returns the parts of a response
    frame. Large records and slices of files are separate parts. It raises TooLong like an encoder.
    """
    generator = FrameSource(version, version in schema_of(cls).flexible)
    return cast(Framer, generator.compile(cls, f"frame {cls.__name__} v{version}"))
