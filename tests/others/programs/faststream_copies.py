"""Copies records with FastStream. Arguments: address, input, output, client library, "single" or "batch"."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from faststream import AckPolicy, FastStream

address, lines, counts, library, mode = sys.argv[1:]
if library == "aiokafka":
    from faststream.kafka import KafkaBroker
else:
    from faststream.confluent import KafkaBroker

broker = KafkaBroker(address)
publisher = broker.publisher(counts)
options: dict[str, Any] = {
    "group_id": f"{lines}-group",
    "auto_offset_reset": "earliest",
    "ack_policy": AckPolicy.NACK_ON_ERROR,
}

if mode == "batch":

    @broker.subscriber(lines, batch=True, **options)
    async def copy_batch(values: list[int]) -> None:
        for value in values:
            await publisher.publish(str(value), key=str(value % 10).encode())

else:

    @broker.subscriber(lines, **options)
    async def copy(value: int) -> None:
        await publisher.publish(str(value), key=str(value % 10).encode())


asyncio.run(FastStream(broker).run())
