"""Random state batches, and a model of their combination that has one state per offset."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from kafka_compat.share_coordinator.persister import StateBatch


@st.composite
def batches(draw: st.DrawFn) -> list[StateBatch]:
    found = []
    for _ in range(draw(st.integers(0, 6))):
        first = draw(st.integers(0, 30))
        last = first + draw(st.integers(0, 8))
        found.append(StateBatch(first, last, draw(st.sampled_from((0, 2, 3, 4))), draw(st.integers(1, 3))))
    return found


def model(some: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    states: dict[int, tuple[int, int]] = {}
    for batch in some:
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            state = (batch.delivery_count, batch.delivery_state)
            states[offset] = max(states.get(offset, state), state)
    combined: list[StateBatch] = []
    for offset, (count, kind) in sorted(states.items()):
        last = combined[-1] if combined else None
        if last is not None and last[1:] == (offset - 1, kind, count):
            combined[-1] = last._replace(last_offset=offset)
        else:
            combined.append(StateBatch(offset, offset, kind, count))
    return tuple(combined)
