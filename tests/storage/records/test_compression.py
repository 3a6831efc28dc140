"""Compression codecs: round trips, separate errors for corrupt and for oversized data, and bounded memory
use.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.errors import CorruptRecord, MessageTooLarge
from kafka_compat.storage.records.compression import (
    NAMES,
    SIZE_CEILING_BYTES,
    SIZE_FLOOR_BYTES,
    compress,
    decompress,
    limit_bytes,
)
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record
from tests.storage.record_oracle import RecordOracle

REAL_CODECS = [codec for codec in CompressionType if codec is not CompressionType.NONE]
each_codec = pytest.mark.parametrize("codec", REAL_CODECS, ids=lambda codec: codec.name)
XERIAL_MAGIC = b"\x82SNAPPY\0"


@given(content=st.binary(max_size=5000), repeat=st.integers(1, 200), codec=st.sampled_from(CompressionType))
@settings(deadline=None)
def test_compressed_content_is_decompressed_unchanged(
    content: bytes, repeat: int, codec: CompressionType
) -> None:
    content *= repeat
    assert decompress(codec, memoryview(compress(codec, content))) == content


@each_codec
def test_every_compression_level_of_kafka_is_accepted(codec: CompressionType) -> None:
    levels = {CompressionType.GZIP: (1, 9), CompressionType.LZ4: (1, 17), CompressionType.ZSTD: (-5, 22)}
    content = b"some words, some other words " * 500
    for level in levels.get(codec, ()):
        assert decompress(codec, compress(codec, content, level=level)) == content


def test_other_libraries_read_our_compressed_content() -> None:
    content = os.urandom(1000) * 100
    assert zlib.decompress(compress(CompressionType.GZIP, content), wbits=31) == content
    assert lz4.frame.decompress(compress(CompressionType.LZ4, content)) == content
    assert bytes(cramjam.zstd.decompress(compress(CompressionType.ZSTD, content))) == content


def test_snappy_is_written_with_the_framing_of_kafkas_library() -> None:
    content = os.urandom(100_000)
    compressed = compress(CompressionType.SNAPPY, content)
    assert compressed[:16] == XERIAL_MAGIC + struct.pack(">ii", 1, 1)
    (length,) = struct.unpack_from(">I", compressed, 16)
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + length])) == content[: 32 << 10]


def test_snappy_without_framing_is_read() -> None:
    content = b"librdkafka writes raw blocks " * 50
    assert decompress(CompressionType.SNAPPY, bytes(cramjam.snappy.compress_raw(content))) == content


def test_concatenated_snappy_streams_are_read() -> None:
    first, second = compress(CompressionType.SNAPPY, b"first"), compress(CompressionType.SNAPPY, b"second")
    assert decompress(CompressionType.SNAPPY, first + second) == b"firstsecond"


def test_concatenated_gzip_members_are_read() -> None:
    first, second = compress(CompressionType.GZIP, b"first"), compress(CompressionType.GZIP, b"second")
    assert decompress(CompressionType.GZIP, first + second) == b"firstsecond"


@pytest.mark.parametrize("content_size", [False, True])
def test_lz4_in_format_0_has_the_historic_header_checksum(content_size: bool) -> None:
    content = b"as producers before 0.10 did " * 99
    right = lz4.frame.compress(content, store_size=content_size)
    checksum = 14 if content_size else 6
    wrong = right[:checksum] + bytes((right[checksum] ^ 0x55,)) + right[checksum + 1 :]
    with pytest.raises(CorruptRecord):
        decompress(CompressionType.LZ4, wrong)
    assert decompress(CompressionType.LZ4, wrong, magic=0) == content


def test_kafka_reads_our_lz4_in_format_0_and_writes_the_same_header(oracle: RecordOracle) -> None:
    theirs = oracle.build([Record(timestamp=-1, value=b"x" * 100)] * 3, magic=0, codec=CompressionType.LZ4)
    frame = theirs.index(b"\x04\x22\x4d\x18")
    ours = compress(CompressionType.LZ4, b"anything", magic=0)
    assert ours[:7] == theirs[frame : frame + 7]
    assert ours[:7] != compress(CompressionType.LZ4, b"anything", magic=1)[:7]


@each_codec
def test_truncated_content_is_reported_as_corrupt(codec: CompressionType) -> None:
    compressed = compress(codec, os.urandom(3000))
    for size in {*range(30), len(compressed) // 2, *range(len(compressed) - 5, len(compressed))}:
        if codec is CompressionType.SNAPPY and size == len(XERIAL_MAGIC) + 8:
            continue  # A frame without any block is valid: it is how empty content is compressed.
        with pytest.raises(CorruptRecord):
            decompress(codec, compressed[:size])


@given(codec=st.sampled_from(REAL_CODECS), data=st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_content_is_decompressed_or_reported_as_corrupt(
    codec: CompressionType, data: st.DataObject
) -> None:
    compressed = bytearray(compress(codec, b"one, two, three " * 60))
    for _ in range(data.draw(st.integers(1, 3))):
        compressed[data.draw(st.integers(0, len(compressed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptRecord, MessageTooLarge):
        decompress(codec, bytes(compressed))


@given(codec=st.sampled_from(REAL_CODECS), garbage=st.binary(min_size=1, max_size=300))
@settings(deadline=None)
def test_random_bytes_are_decompressed_or_reported_as_corrupt(codec: CompressionType, garbage: bytes) -> None:
    with contextlib.suppress(CorruptRecord, MessageTooLarge):
        decompress(codec, garbage)


@pytest.mark.parametrize("codec", [0, 5, 6, 7])
def test_unknown_codecs_are_reported_as_corrupt_records(codec: int) -> None:
    if codec == 0:
        assert decompress(codec, b"as it is") == b"as it is"
    else:
        with pytest.raises(CorruptRecord):
            decompress(codec, b"")


MEASURE = """
import resource, sys
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.compression import compress, decompress
from kafka_compat.storage.errors import MessageTooLarge
codec, bomb = int(sys.argv[1]), sys.stdin.buffer.read()
decompress(codec, compress(CompressionType(codec), b"warm"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, bomb)
except MessageTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before << 10)
"""


@each_codec
def test_a_decompression_bomb_is_rejected_within_bounded_memory(codec: CompressionType) -> None:
    bomb = compress(codec, bytes(400 << 20))
    # Run in a new process, where no other test has raised the peak memory.
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(codec.value)], input=bomb, stdout=subprocess.PIPE, check=True
    )
    assert int(done.stdout) < 2 * limit_bytes(len(bomb)) + (1 << 20)


def test_zstd_frames_without_a_content_size_are_read() -> None:
    """Java's library writes streaming frames, which have no content size."""
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    for content in (b"", b"short", os.urandom(300_000), bytes(SIZE_FLOOR_BYTES // 4)):
        frame = compressor.compress(content)
        assert decompress(CompressionType.ZSTD, frame) == content
        assert decompress(CompressionType.ZSTD, frame + frame) == content + content
        assert decompress(CompressionType.ZSTD, compress(CompressionType.ZSTD, b"first") + frame) == (
            b"first" + content
        )
        for damaged in (frame[:-1], frame[: len(frame) // 2], frame + b"more"):
            with pytest.raises(CorruptRecord):
                decompress(CompressionType.ZSTD, damaged)


def test_a_zstd_bomb_without_a_content_size_is_rejected_within_bounded_memory() -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(400 << 20))
    code = str(CompressionType.ZSTD.value)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, code], input=bomb, stdout=subprocess.PIPE, check=True
    )
    assert int(done.stdout) < 2 * limit_bytes(len(bomb)) + (1 << 20)


def test_a_block_that_declares_an_excessive_size_is_rejected_immediately() -> None:
    announces_4_gib = b"\xff\xff\xff\xff\x0f" + b"\0" * 20
    with pytest.raises(CorruptRecord):
        decompress(CompressionType.SNAPPY, announces_4_gib)


@each_codec
def test_highly_compressible_records_are_not_mistaken_for_a_bomb(codec: CompressionType) -> None:
    content = bytes(SIZE_FLOOR_BYTES)
    assert decompress(codec, compress(codec, content)) == content


def test_the_decompression_limit_grows_with_the_input() -> None:
    assert limit_bytes(0) == SIZE_FLOOR_BYTES
    assert limit_bytes(1_000_000) == 100_000_000
    assert limit_bytes(100 << 20) == SIZE_CEILING_BYTES


def test_codec_names_match_the_values_of_the_compression_type_setting() -> None:
    assert NAMES.keys() == {"uncompressed", "gzip", "snappy", "lz4", "zstd"}
