"""Compression codecs for record batches. Compressed data has the format of Kafka's Java producer.

The decompressed size is limited, so that a small malicious batch cannot exhaust the broker's memory.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.storage.errors import CorruptRecord, MessageTooLarge, TakesLong
from kafka_compat.storage.records.batch import Buffer
from kafka_compat.storage.records.kinds import CompressionType

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

SIZE_FLOOR_BYTES = 16 << 20
SIZE_CEILING_BYTES = 128 << 20
RATIO_LIMIT = 100


def limit_bytes(compressed_size_bytes: int) -> int:
    """Return the maximum decompressed size, in bytes, of data with this compressed size.

    The limit is a hundred times the compressed size. It is at least 16 MiB, because a small batch of
    identical records may legitimately have a higher ratio, and at most 128 MiB, which exceeds the default
    maximum size of a request.
    """
    return min(SIZE_CEILING_BYTES, max(SIZE_FLOOR_BYTES, RATIO_LIMIT * compressed_size_bytes))


def compress(codec: CompressionType, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
    """Compress `data`. `level` is a value of compression.CODEC.level (KIP-390), or None for the default.

    `magic` affects only lz4, whose frame header has a wrong checksum in message format 0 (KIP-57).
    """
    if codec is CompressionType.NONE:
        return bytes(data)
    compressed = _CODECS[codec].compress(data, level)
    if magic == 0 and codec is CompressionType.LZ4:
        return _with_lz4_header_checksum(compressed, covers_frame_magic=True)
    return compressed


def decompress(codec: int, data: Buffer, *, magic: int = 2, quick_bytes: int | None = None) -> bytes:
    """Decompress `data`. `magic` is the message format version, as in `compress`.

    Raises CorruptRecord if the data is corrupt, truncated or followed by other data, or if the codec is
    unknown. Raises TakesLong if the decompressed size exceeds `quick_bytes`. Without `quick_bytes`, raises
    MessageTooLarge if the decompressed size exceeds `limit_bytes(len(data))`.
    """
    if codec == CompressionType.NONE:
        return bytes(data)
    entry = _CODECS.get(codec)
    if entry is None:
        raise CorruptRecord(f"{codec} is not a compression codec")
    if magic == 0 and codec == CompressionType.LZ4:
        data = _with_lz4_header_checksum(bytes(data), covers_frame_magic=False)
    if quick_bytes is None:
        return entry.decompress(data, limit_bytes(len(data)))
    try:
        return entry.decompress(data, quick_bytes)
    except MessageTooLarge:
        raise TakesLong from None


def _too_large(size_bytes: int) -> MessageTooLarge:
    return MessageTooLarge(f"{size_bytes} compressed bytes decompress to more than {limit_bytes(size_bytes)}")


# gzip


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, wbits=31)
    return compressor.compress(data) + compressor.flush()


def _gzip_decompress(data: Buffer, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    rest: Buffer = data
    try:
        while True:
            member = zlib.decompressobj(wbits=31)
            part = member.decompress(rest, limit + 1 - size)
            size += len(part)
            if size > limit:
                raise _too_large(len(data))
            if not member.eof:
                raise CorruptRecord("the gzip data is truncated")
            parts.append(part)
            rest = member.unused_data
            if not rest:
                return part if len(parts) == 1 else b"".join(parts)
    except zlib.error as error:
        raise CorruptRecord(f"invalid gzip data: {error}") from None


# snappy: compressed with the framing of the Java library (xerial), as in Kafka. Raw blocks are also accepted.

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 << 10
_SNAPPY_MAX_RATIO = 64
_LENGTH = struct.Struct(">I")


def _snappy_compress(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, limit: int) -> bytes:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, limit, len(data))
    position = len(_XERIAL_HEADER)
    parts: list[bytes] = []
    size = 0
    while position < len(view):
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Skip the header of another stream, because concatenated streams keep their headers.
            position += len(_XERIAL_HEADER)
            continue
        if position + _LENGTH.size > len(view):
            raise CorruptRecord("the snappy data is truncated")
        (length,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        if position + length > len(view):
            raise CorruptRecord("the snappy data is truncated")
        parts.append(_snappy_block(view[position : position + length], limit - size, len(data)))
        size += len(parts[-1])
        position += length
    if position > len(view):
        raise CorruptRecord("the snappy data is truncated")
    return b"".join(parts)


def _snappy_block(block: memoryview, limit: int, size_bytes: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        length = int(snappy.decompress_raw_len(block))
        if length > _SNAPPY_MAX_RATIO * len(block):
            raise CorruptRecord("the snappy data announces more than it can contain")
        if length > limit:
            raise _too_large(size_bytes)
        block_content = bytearray(length)
        snappy.decompress_raw_into(block, block_content)
    except DecompressionError as error:
        raise CorruptRecord(f"invalid snappy data: {error}") from None
    return bytes(block_content)


# lz4 frames

_LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DEFAULT_LEVEL = 9
_LZ4_HIGH_COMPRESSION_MIN = 3


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    # In Kafka, level 9 selects the fast compressor, and all other levels select the high compressor.
    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else max(level or 0, _LZ4_HIGH_COMPRESSION_MIN),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_decompress(data: Buffer, limit: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    size = 0
    rest: Buffer = data
    step = 8 * len(data) + 4096
    try:
        while not frame.eof:
            part = frame.decompress(rest, max_length=min(step, limit + 1 - size))
            rest = b""
            size += len(part)
            if size > limit:
                raise _too_large(len(data))
            if not part and not frame.eof and frame.needs_input:
                raise CorruptRecord("the lz4 frame is truncated")
            parts.append(part)
    except RuntimeError as error:
        raise CorruptRecord(f"invalid lz4 data: {error}") from None
    if frame.unused_data:
        raise CorruptRecord("the lz4 frame is followed by other data")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _with_lz4_header_checksum(frame: bytes, *, covers_frame_magic: bool) -> bytes:
    """Return `frame` with a recomputed header checksum.

    In message format 0, the checksum also covers the frame's magic number, and readers ignore the checksum.
    """
    if len(frame) < 7 or frame[:4] != _LZ4_FRAME_MAGIC:
        raise CorruptRecord("the lz4 frame is missing")
    has_content_size = frame[4] & 0x08
    end = 14 if has_content_size else 6
    if len(frame) <= end:
        raise CorruptRecord("the lz4 frame is truncated")
    from xxhash import xxh32_intdigest

    checksum = xxh32_intdigest(frame[0 if covers_frame_magic else 4 : end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


# zstd

_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_RATIO_MAX = 32 << 10
"""Maximum compression ratio of a frame: a block of four bytes can repeat one byte 128 Ki times."""
_ZSTD_KEPT_WINDOW_BYTES_MAX = 8 << 20
"""Maximum window size for which a decompressor is reused, because it keeps the memory of its largest window.
Level 19 needs 8 MiB.
"""
_ZSTD_SIZE_UNKNOWN = (1 << 64) - 1
_kept = threading.local()


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    import zstandard

    level = _ZSTD_DEFAULT_LEVEL if level is None else level
    return zstandard.ZstdCompressor(level=level).compress(data)


def _zstd_decompress(data: Buffer, limit: int) -> bytes:
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(data)
        # Reuse the decompressor: creating one takes longer than decompressing a small batch.
        decompressor: ZstdDecompressor = getattr(_kept, "decompressor", None) or zstandard.ZstdDecompressor()
        if frame.window_size <= _ZSTD_KEPT_WINDOW_BYTES_MAX:
            _kept.decompressor = decompressor
        else:
            decompressor = zstandard.ZstdDecompressor()
        if frame.content_size != _ZSTD_SIZE_UNKNOWN:
            if frame.content_size > limit:
                raise _too_large(len(data))
            with contextlib.suppress(zstandard.ZstdError):
                return decompressor.decompress(data, allow_extra_data=False)
        return _zstd_in_pieces(decompressor, data, limit)
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"invalid zstd data: {error}") from None


def _zstd_in_pieces(decompressor: ZstdDecompressor, data: Buffer, limit: int) -> bytes:
    """Decompress frames in small chunks, so that the output never exceeds twice the limit. Frames need not
    contain the content size, which the Java library omits.
    """
    view = memoryview(data)
    parts: list[bytes] = []
    size = position = 0
    frame = decompressor.decompressobj()
    while True:
        end = position + max((2 * limit - size) // _ZSTD_RATIO_MAX, 1)
        part = frame.decompress(view[position:end])
        size += len(part)
        if size > limit:
            raise _too_large(len(data))
        parts.append(part)
        position = min(end, len(view)) - len(frame.unused_data)
        if frame.eof:
            if position == len(view):
                return part if len(parts) == 1 else b"".join(parts)
            frame = decompressor.decompressobj()
        elif position == len(view):
            raise CorruptRecord("the zstd frame is truncated")


class _Codec(NamedTuple):
    compress: Callable[[Buffer, int | None], bytes]
    decompress: Callable[[Buffer, int], bytes]


_CODECS: dict[int, _Codec] = {
    CompressionType.GZIP: _Codec(_gzip_compress, _gzip_decompress),
    CompressionType.SNAPPY: _Codec(_snappy_compress, _snappy_decompress),
    CompressionType.LZ4: _Codec(_lz4_compress, _lz4_decompress),
    CompressionType.ZSTD: _Codec(_zstd_compress, _zstd_decompress),
}

NAMES: dict[str, CompressionType] = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}
"""Maps values of compression.type to codecs. The value `producer` is missing, because it is not a codec."""
