"""Operations of IncrementalAlterConfigs on a set of settings (KIP-339). No I/O."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kafka_compat.config import ConfigKey
from kafka_compat.errors import ErrorCode, KafkaError


class Operation(IntEnum):
    """Operations of IncrementalAlterConfigs. APPEND and SUBTRACT apply only to lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """A change to one setting. `operation` is the number that the client sent."""

    name: str
    operation: int
    value: str | None


_OPERATIONS: Final = frozenset(Operation)
_SET: Final = int(Operation.SET)
"""A plain number, because comparisons with an enum take several times as long."""
_LIST_OPERATIONS: Final = frozenset((Operation.APPEND, Operation.SUBTRACT))


def changed(
    old: Mapping[str, str], changes: Sequence[Change], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """Return the settings after an IncrementalAlterConfigs request. Raises KafkaError if it is invalid."""
    settings = dict(old)
    for change in changes:
        if change.operation == _SET and change.value is not None:
            settings[change.name] = change.value
            continue
        check_operation(change)
        if change.operation == Operation.DELETE:
            settings.pop(change.name, None)
            continue
        assert change.value is not None
        key = keys.get(change.name)
        verb = "append" if change.operation == Operation.APPEND else "subtract"
        if key is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
        if key.type != "list":
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {change.name}"
            )
        items = [item for item in settings.get(change.name, key.default or "").split(",") if item]
        given = change.value.split(",")
        if change.operation == Operation.APPEND:
            items += [item for item in given if item not in items]
        else:
            for item in given:
                if item in items:
                    items.remove(item)
        settings[change.name] = ",".join(items)
    return settings


def check_names(names: Sequence[str], nulls: Sequence[str]) -> None:
    """Raise KafkaError for duplicates in `names`, and for any `nulls` (names with invalid null values)."""
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def check_operation(change: Change) -> None:
    """Raise KafkaError for an unknown operation."""
    if change.operation not in _OPERATIONS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")


def check_no_lists(changes: Sequence[Change]) -> None:
    """Raise KafkaError for APPEND and SUBTRACT, for resources that have no settings of type list."""
    for change in changes:
        if change.operation in _LIST_OPERATIONS:
            verb = Operation(change.operation).name
            problem = f"Can't {verb} to key {change.name} because its type is not LIST."
            raise KafkaError(ErrorCode.INVALID_CONFIG, problem)
