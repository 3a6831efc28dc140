"""Responses as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from kafka_compat.long_work import AT_ONCE, batched


async def json_text(answer: Any) -> str:
    """What json.dumps makes of it. The lists of an object are written in parts, where they are long, between
    which others are served.
    """
    if not isinstance(answer, dict):
        return json.dumps(answer)
    members = [f"{json.dumps(name)}: {await _value(value)}" for name, value in answer.items()]
    return f"{{{', '.join(members)}}}"


async def _value(value: Any) -> str:
    if not isinstance(value, list) or len(value) <= AT_ONCE:
        return json.dumps(value)
    parts = []
    for some in batched(value):
        parts.append(json.dumps(some)[1:-1])
        await asyncio.sleep(0)
    return f"[{', '.join(parts)}]"
