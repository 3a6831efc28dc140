"""Versions of the requests that the client sends to a newer broker."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from kafka_compat.client.cluster import Cluster
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import encode
from kafka_compat.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

OF_KAFKA_4_4 = {
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.END_TXN: (0, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 6),
}


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.LIST_OFFSETS, 11),
        (ApiKey.METADATA, 13),
        (ApiKey.OFFSET_COMMIT, 9),
        (ApiKey.OFFSET_FETCH, 9),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3),
        (ApiKey.END_TXN, 4),
        (ApiKey.TXN_OFFSET_COMMIT, 5),
    ],
)
def test_the_client_never_sends_a_version_that_it_does_not_implement(key: ApiKey, version: int) -> None:
    """The broker would reject offsets without topic IDs, for example."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=respond_with_versions, args=(listener,), daemon=True).start()
        cluster = Cluster(f"127.0.0.1:{listener.getsockname()[1]}")
        assert cluster.version(-1, key, "test") == version
        cluster.close()


def respond_with_versions(listener: socket.socket) -> None:
    """Accept one connection, and respond to its ApiVersions request like a Kafka 4.4 broker."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as requests:
        (size,) = struct.unpack(">i", requests.read(4))
        correlation_id = requests.read(size)[4:8]
        served = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in OF_KAFKA_4_4.items()
        ]
        body = correlation_id + encode(ApiVersionsResponse(api_keys=served), 0)
        connection.sendall(struct.pack(">i", len(body)) + body)
