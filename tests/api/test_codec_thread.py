"""The codec's thread frees long responses in parts."""

from __future__ import annotations

from kafka_compat.api.codec_thread import CodecThread
from kafka_compat.protocol.messages.share_fetch import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from tests.support.waiting import until


def _topic(partitions: int) -> ShareFetchableTopicResponse:
    return ShareFetchableTopicResponse(
        partitions=[PartitionData(partition_index=number, records=b"") for number in range(partitions)]
    )


async def test_the_arrays_of_a_sent_response_are_emptied_except_those_used_elsewhere() -> None:
    thread = CodecThread()
    await thread.run(lambda: None)
    first, second, shared = _topic(100), _topic(3), _topic(100)
    kept = shared.partitions
    few = ShareFetchResponse(responses=[first, second, shared])
    many = ShareFetchResponse(responses=[_topic(1) for _ in range(100)])
    thread.free(few)
    thread.free(many)
    await until(lambda: not few.responses and not many.responses)
    assert (first.partitions, second.partitions, len(kept)) == ([], [], 100)
    thread.close()


async def test_a_response_without_arrays_of_its_own_stays() -> None:
    thread = CodecThread()
    await thread.run(lambda: None)
    topics = [_topic(1)]
    response = ShareFetchResponse(responses=topics)
    thread.free(response)
    await thread.run(lambda: None)
    assert response.responses is topics and len(topics[0].partitions) == 1
    thread.close()
