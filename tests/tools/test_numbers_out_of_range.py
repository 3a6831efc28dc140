"""Numbers and JSON files that Java's commands cannot parse: errors before any request."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.tools import chosen_groups, config_resources, json_input, reassign_plan, reset_offsets
from kafka_compat.tools.failure import Failure, java_int

BEYOND_INT, BEYOND_LONG = 2**31, 2**63


def _error(action: object) -> str:
    assert callable(action)
    with pytest.raises(Failure) as failed:
        action()
    return str(failed.value)


@pytest.mark.parametrize(("text", "bits"), [("-2147483648", 32), ("+7", 32), (str(2**63 - 1), 64)])
def test_numbers_of_java_are_parsed(text: str, bits: int) -> None:
    assert java_int(text, bits) == int(text)


@pytest.mark.parametrize(
    ("text", "bits"),
    [(str(BEYOND_INT), 32), (str(BEYOND_LONG), 64), ("1_0", 32), (" 1", 32), ("", 32), ("9" * 5000, 64)],
)
def test_other_numbers_are_rejected_as_by_java(text: str, bits: int) -> None:
    expected = f'java.lang.NumberFormatException: For input string: "{text}"'
    assert _error(lambda: java_int(text, bits)) == expected


def test_numbers_in_json_are_as_large_as_javas() -> None:
    assert json_input.field({"a": -(2**31)}, "a", int) == -(2**31)
    assert json_input.field({"a": 2**63 - 1}, "a", int, "Long") == 2**63 - 1
    too_large = {"a": BEYOND_INT, "b": BEYOND_LONG}
    assert f"Expected `Integer` value, received {BEYOND_INT}" in _error(
        lambda: json_input.field(too_large, "a", int)
    )
    assert f"Expected `Long` value, received {BEYOND_LONG}" in _error(
        lambda: json_input.field(too_large, "b", int, "Long")
    )


@pytest.mark.parametrize("text", ["[" * 5000, '{"topic": "\\ud800"}', '{"a": }'])
def test_json_that_no_request_can_hold_is_not_json(text: str) -> None:
    assert json_input.parsed(text) is None


def test_log_directories_of_a_plan_are_texts() -> None:
    plan = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": [3]}]}'
    assert "Expected `String` value, received 3" in _error(lambda: reassign_plan.read_plan(plan))


def test_ids_of_partitions_and_brokers_are_limited() -> None:
    assert "Invalid partition '2147483648'" in _error(lambda: chosen_groups.partitions_in(f"t:{BEYOND_INT}"))
    assert "NumberFormatException" in _error(lambda: reassign_plan.read_brokers(f"1,{BEYOND_INT}"))
    assert "must be a broker's ID" in _error(
        lambda: config_resources.configs_of(None, "brokers", str(BEYOND_INT))
    )


@pytest.mark.parametrize("content", [b"\xff\xfe\x00bad", b"t,0,1\nt\x00,x,1\n", b't,0,"' + b"x" * 200_000])
def test_a_binary_file_with_offsets_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "offsets.csv"
    path.write_bytes(content)
    assert str(path) in _error(lambda: reset_offsets._plan_in(str(path), ["g"]))
