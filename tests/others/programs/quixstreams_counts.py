"""Counts the records of each key with quixstreams.

Arguments: address, input, output, directory, guarantee.
"""

from __future__ import annotations

import sys

from quixstreams import Application, State

address, lines, counts, directory, guarantee = sys.argv[1:]
application = Application(
    broker_address=address,
    consumer_group=f"{lines}-group",
    processing_guarantee=guarantee,
    auto_offset_reset="earliest",
    state_dir=directory,
    commit_interval=0.5,
)
source = application.topic(lines, key_deserializer="bytes", value_deserializer="bytes")
target = application.topic(counts, key_serializer="bytes", value_serializer="bytes")


def count(value: bytes, state: State) -> bytes:
    seen = state.get("seen", 0) + 1
    state.set("seen", seen)
    return f"{value.decode()}:{seen}".encode()


application.dataframe(source).apply(count, stateful=True).to_topic(target)
application.run()
