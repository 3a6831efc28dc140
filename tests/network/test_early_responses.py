"""A cooperatively scheduled handler may complete its response before it yields."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.long_work import TURN_S
from kafka_compat.protocol.api_keys import ApiKey
from tests.network.embedded import ask, lives, serving

MARKER: dict[str, Any] = {
    "producer_id": 1,
    "producer_epoch": 0,
    "topics": [{"name": "absent", "partition_indexes": [0]}],
}


async def test_a_response_completed_while_its_handler_still_runs_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(function: Any, *arguments: Any) -> Any:
        time.sleep(2 * TURN_S)  # the step takes longer than a slice
        return partial(function, *arguments)

    monkeypatch.setattr("kafka_compat.handlers.write_txn_markers.partial", slow)
    async with serving(tmp_path) as (_, connection):
        answer = await ask(connection, ApiKey.WRITE_TXN_MARKERS, 1, {"markers": [MARKER]})
        found: Iterator[Any] = (p for m in answer["markers"] for t in m["topics"] for p in t["partitions"])
        assert [item["error_code"] for item in found] == [3]
        assert await lives(connection)
