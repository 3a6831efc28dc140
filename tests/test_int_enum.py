"""Our IntEnum behaves like enum.IntEnum."""

import copy
import enum
import json
import pickle
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey

_TABLES: tuple[Any, ...] = (ErrorCode, ApiKey)


@pytest.mark.parametrize("table", _TABLES)
def test_members_behave_like_members_of_the_standard_enumeration(table: Any) -> None:
    new: Any = enum.IntEnum
    standard = new(table.__name__, {key: int(member) for key, member in table.__members__.items()})
    assert [*map(int, table)] == [*map(int, standard)]
    for ours, theirs in zip(table, standard, strict=True):
        assert isinstance(ours, table)
        assert (ours, ours.name, bool(ours), hash(ours)) == (theirs, theirs.name, bool(theirs), hash(theirs))
        assert (str(ours), repr(ours), f"{ours:>4}") == (str(theirs), repr(theirs), f"{theirs:>4}")
        assert json.dumps(ours) == json.dumps(theirs)
        assert (
            table[ours.name] is table(int(ours)) is copy.deepcopy(ours) is getattr(table, ours.name) is ours
        )
        assert pickle.loads(pickle.dumps(ours)) is ours


def test_numbers_without_a_member_raise_the_same_error() -> None:
    with pytest.raises(ValueError, match="999 is not a valid ErrorCode"):
        ErrorCode(999)
    with pytest.raises(KeyError):
        ErrorCode["NO_SUCH_CODE"]
