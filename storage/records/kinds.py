"""Enumerations for the numeric codes in batches and records.

Enumerations are defined in modules that are not compiled, because mypyc 2.4.1 treats an optional member of a
compiled enumeration as true even if its number is 0.
"""

from enum import IntEnum


class CompressionType(IntEnum):
    """Codec of a batch, from the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Source of the timestamps of a batch, as in message.timestamp.type."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlRecordType(IntEnum):
    """Type of a control record. The record's key is (version int16 = 0, type int16)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
