"""Controller listeners with security: logins, certificates, and the permission for requests between nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.vote import PartitionData, TopicData, VoteRequest
from kafka_compat.security.broker_security import NONE, BrokerSecurity, SaslLogin
from kafka_compat.security.sasl.client import PlainClient
from tests.cluster.embedded import until
from tests.quorum.cluster import CLUSTER_ID, QuorumCluster
from tests.support.certificates import authority
from tests.support.secure_zookeeper import pem_store

_PLAIN = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="secret" user_node="secret" user_eve="other";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:ANONYMOUS",
}


def _plain(user: str, password: str) -> BrokerSecurity:
    return BrokerSecurity(login=SaslLogin("PLAIN", lambda _: PlainClient(user, password)))


async def _vote(cluster: QuorumCluster, security: BrokerSecurity, epoch: int) -> ErrorCode:
    """Request a vote that would depose the leader. Return the error."""
    node_id = cluster.leader_id
    client = BrokerClient(
        "127.0.0.1", cluster.controller_ports[node_id], "test", security=security, request_timeout_ms=5_000
    )
    partition = PartitionData(replica_epoch=epoch, replica_id=3, last_offset_epoch=epoch, last_offset=10**9)
    request = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter_id=node_id,
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[partition])],
    )
    try:
        response = await client.send(ApiKey.VOTE, 2, request)
    finally:
        await client.close()
    return ErrorCode(response.error_code)


async def test_only_super_users_may_vote_on_a_listener_with_passwords(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, settings=_PLAIN)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    node = cluster.nodes[cluster.leader_id]
    epoch = node.machine.epoch
    with pytest.raises(ConnectionError):
        await _vote(cluster, NONE, epoch + 10)
    with pytest.raises(ConnectionError):
        await _vote(cluster, _plain("node", "wrong"), epoch + 10)
    assert await _vote(cluster, _plain("eve", "other"), epoch + 10) == (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    assert node.machine.epoch == epoch
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await cluster.stop()


async def test_nodes_authenticate_with_certificates(tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority().pem())
    keys = pem_store(tmp_path / "keys.pem", authority().issue("node"))
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=node;User:ANONYMOUS",
    }
    cluster = QuorumCluster(tmp_path, settings=settings, controllers=3)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    epoch = cluster.nodes[cluster.leader_id].machine.epoch
    with pytest.raises(ConnectionError):
        await _vote(cluster, NONE, epoch + 10)
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await cluster.stop()
