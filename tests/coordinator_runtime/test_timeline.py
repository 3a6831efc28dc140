"""Timeline values: the committed state follows the current one, append by append."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineDict, TimelineValue

changes = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9)), max_size=6)
steps = st.lists(changes | st.integers(1, 4), max_size=20)
"""An append with its changes (None removes a key), or the number of appends that are committed."""


@given(steps)
def test_the_committed_state_is_the_current_one_of_the_last_committed_append(
    steps: list[list[tuple[str, int | None]] | int],
) -> None:
    snapshots = SnapshotRegistry()
    values: TimelineDict[str, int] = TimelineDict(snapshots)
    last: TimelineValue[str] = TimelineValue(snapshots, "")
    history: list[tuple[dict[str, int], str]] = [({}, "")]
    committed = 0
    for step in steps:
        if isinstance(step, int):
            committed = min(committed + step, len(history) - 1)
            snapshots.commit(committed)
        else:
            snapshots.begin(len(history))
            for key, value in step:
                if value is None:
                    values.remove(key)
                else:
                    values.set(key, value)
                last.set(key)
            snapshots.end()
            history.append((dict(values.current), last.current))
        expected, expected_last = history[committed]
        assert values.committed == expected
        assert {key: values.get_committed(key) for key in "abc"} == {key: expected.get(key) for key in "abc"}
        assert last.committed == expected_last
        if values.is_empty:
            assert values.current == expected == {}


def test_changes_while_loading_are_committed_at_once() -> None:
    snapshots = SnapshotRegistry()
    values: TimelineDict[str, int] = TimelineDict(snapshots)
    values.set("a", 1)
    assert values.committed is values.current
    values.clear()
    assert values.is_empty
