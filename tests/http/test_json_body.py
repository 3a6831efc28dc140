"""Long JSON responses, which are encoded in chunks and equal the output of json.dumps."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.http.listener import json_text
from kafka_compat.long_work import AT_ONCE

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(answer=VALUES, row=VALUES, rows=st.sampled_from([0, 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE]))
def test_a_body_is_encoded_exactly_as_json_dumps_encodes_it(answer: Any, row: Any, rows: int) -> None:
    if isinstance(answer, dict):
        answer["rows"] = [row] * rows
    assert asyncio.run(json_text(answer)) == json.dumps(answer)


@pytest.mark.asyncio
async def test_encoding_a_large_body_yields_to_the_event_loop() -> None:
    served = 0

    async def others() -> None:
        nonlocal served
        while True:
            served += 1
            await asyncio.sleep(0)  # lets the encoding run

    serving = asyncio.ensure_future(others())
    await json_text({"rows": list(range(10 * AT_ONCE))})
    serving.cancel()
    assert served >= 10
