"""Counts the records of each key with faust. Arguments: address, input, output, directory, guarantee."""

from __future__ import annotations

import sys
from typing import Any

import faust

address, lines, counts, directory, guarantee = sys.argv[1:]
application = faust.App(
    lines.removesuffix("-lines"),
    broker=f"kafka://{address}",
    processing_guarantee=guarantee,
    datadir=directory,
    store="memory://",
    topic_partitions=2,
    broker_commit_interval=0.5,
)
source = application.topic(lines, key_serializer="raw", value_serializer="raw")
target = application.topic(counts, key_serializer="raw", value_serializer="raw")
seen = application.Table("seen", default=int, partitions=2)


@application.agent(source)
async def count(stream: Any) -> None:
    async for event in stream.events():
        key = event.key.decode()
        seen[key] += 1
        await target.send(key=event.key, value=f"{event.value.decode()}:{seen[key]}".encode())


sys.argv[1:] = ["worker", "--loglevel", "info", "--without-web"]
application.main()
