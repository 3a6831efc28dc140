"""Fetch sessions that run identically on two brokers (KIP-227)."""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.comparison import differences, neutral
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain


class Session:
    """One fetch session on each of the two brokers."""

    def __init__(self, pair: Pair, version: int, topics: dict[str, int], max_wait_ms: int = 0) -> None:
        """Start the session. `topics` maps each topic to its fetch offset."""
        self._pair = pair
        self._version = version
        self._max_wait_ms = max_wait_ms
        self._epoch = 0
        self._ids = dict.fromkeys(pair.sides, 0)
        self._topic_ids = {topic: pair.ids(topic) for topic in topics}
        self.names = {side: {self._topic_ids[topic][side]: topic for topic in topics} for side in pair.sides}
        self.told = self._ask(topics)

    def again(self) -> dict[str, int]:
        """Send an incremental fetch, and return the error code of each topic in the response, which must be
        the same from both brokers."""
        self.told = self._ask({})
        return self.told

    def _ask(self, topics: dict[str, int]) -> dict[str, int]:
        def request(side: str) -> Plain:
            wanted = [
                {
                    "topic": topic,
                    "topic_id": self._topic_ids[topic][side],
                    "partitions": [{"partition": 0, "fetch_offset": at, "partition_max_bytes": 9999}],
                }
                for topic, at in topics.items()
            ]
            return {
                "replica_id": -1,
                "max_wait_ms": self._max_wait_ms,
                "min_bytes": 1,
                "max_bytes": 99_999,
                "session_id": self._ids[side],
                "session_epoch": self._epoch,
                "topics": wanted,
            }

        answers = self._pair.both(ApiKey.FETCH, self._version, request)
        told: list[dict[str, int]] = []
        for side, answer in zip(self._pair.sides, answers, strict=True):
            self._ids[side] = answer["session_id"]
            assert answer["session_id"], answer
            for item in answer["responses"]:
                item["topic"] = item["topic"] or self.names[side][item["topic_id"]]
            told.append({item["topic"]: item["partitions"][0]["error_code"] for item in answer["responses"]})
            answer["responses"].sort(key=lambda item: item["topic"])
        ours, genuine = (neutral(answer, ApiKey.FETCH) for answer in answers)
        shown = list(differences(ours, genuine, ApiKey.FETCH))
        assert not shown, "\n".join(shown)
        self._epoch += 1
        return told[0]
