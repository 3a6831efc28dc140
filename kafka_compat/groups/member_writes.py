"""Writes of members, epochs and assignments, and how their failures are reported to members."""

from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import STORE_ERRORS
from kafka_compat.errors import ErrorCode

STORE_FAILURES: Final = STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Maps error codes of a failed append to error codes for members of consumer groups and share groups."""


class MembersStored(NamedTuple):
    """A write of members, epochs or assignments of a consumer group or a share group."""
