"""Controller listeners with security: logins, certificates, and the permission for requests between nodes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.forwarding import CLIENT_ID_PREFIX
from kafka_compat.coordination.nodes import znodes
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafka_compat.protocol.messages.elect_leaders import ElectLeadersRequest
from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafka_compat.protocol.messages.update_features import UpdateFeaturesRequest
from kafka_compat.protocol.messages.vote import PartitionData, TopicData, VoteRequest
from kafka_compat.security.broker_security import NONE, BrokerSecurity, SaslLogin
from kafka_compat.security.sasl.client import PlainClient, ScramClient
from tests.cluster.embedded import until
from tests.handlers.controller.requests import RAFT_APIS, client_of, strange_requests
from tests.quorum.cluster import CLUSTER_ID, PATIENT, QuorumCluster
from tests.support.certificates import authority
from tests.support.secure_zookeeper import pem_store
from tests.support.secured import BROKER, CLIENT, MECHANISM, PASSWORDS, Secured, first_nodes

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


def _scram(user: str, password: str) -> BrokerSecurity:
    return BrokerSecurity(login=SaslLogin(MECHANISM, lambda _: ScramClient(MECHANISM, user, password)))


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


async def test_only_super_users_may_use_a_listener_with_passwords(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, settings={**PATIENT, **_PLAIN})
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
    await _check_rejections(cluster.controller_ports[node.node_id], epoch)
    assert node.machine.epoch == epoch
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await cluster.stop()


async def _check_rejections(port: int, epoch: int) -> None:
    """Check that clients without a login or without permissions can neither read nor change anything."""
    permitted = (ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER)
    eve = client_of(port, _plain("eve", "other"))
    for api_key in RAFT_APIS:
        ((version, request),) = strange_requests(api_key, CLUSTER_ID, epoch, 0, 1)
        if api_key is not ApiKey.API_VERSIONS:
            stranger = client_of(port)
            with pytest.raises(ConnectionError):
                await stranger.send(api_key, version, request)
            await stranger.close()
        if api_key not in permitted:
            response = await eve.send(api_key, version, request)
            assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, (api_key, response)
    await eve.close()


async def _is_rejected(cluster: QuorumCluster, security: BrokerSecurity) -> bool:
    """Return whether the leader rejects a login, or a vote in an epoch of the past."""
    try:
        return await _vote(cluster, security, 0) != ErrorCode.NONE
    except ConnectionError:
        return True


class _QuorumWithLogins(QuorumCluster):
    """Two brokers and a controller. All of them, and eve, log in with passwords. Eve has no permission."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, count=2, settings={**PATIENT, **_PLAIN}, controllers=1)

    def node_settings(self, node_id: int) -> dict[str, str]:
        found = super().node_settings(node_id)
        if node_id in self.controller_ports:
            return {**found, "super.users": "User:node"}
        jaas = found["listener.name.controller.plain.sasl.jaas.config"]
        return {
            **found,
            "listeners": found["listeners"].replace("PLAINTEXT://", "SASL_PLAINTEXT://"),
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            "super.users": "User:node",
        }


async def test_requests_for_the_controller_need_permission_at_every_broker(tmp_path: Path) -> None:
    """A client gains no permissions with the client ID of a forwarding broker."""
    requests = {
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0): AlterPartitionReassignmentsRequest(topics=[]),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0): ListPartitionReassignmentsRequest(),
        (ApiKey.ELECT_LEADERS, 2): ElectLeadersRequest(topic_partitions=None),
        (ApiKey.UPDATE_FEATURES, 1): UpdateFeaturesRequest(feature_updates=[]),
    }
    cluster = _QuorumWithLogins(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 2 for broker in cluster.brokers.values()))
    for broker in cluster.brokers.values():
        ((host, port),) = broker.addresses.values()
        for login, client_id, expected in (
            (_plain("node", "secret"), "tool", ErrorCode.NONE),
            (_plain("eve", "other"), "tool", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (_plain("eve", "other"), f"{CLIENT_ID_PREFIX}1", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ):
            client = BrokerClient(host, port, client_id, security=login, request_timeout_ms=20_000)
            for (api_key, version), request in requests.items():
                response = await client.send(api_key, version, request)
                assert response.error_code == expected, (broker.broker_id, client_id, api_key)
            await client.close()
    await cluster.stop()


class SecuredQuorum(QuorumCluster):
    """Two brokers that log in to each other with SCRAM, whose users are in the store, and three controllers
    with a password of their own. ACLs are in the store, too.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, count=2, settings=PATIENT, controllers=3)
        self.security = self._security = Secured(directory / "security")

    def node_settings(self, node_id: int) -> dict[str, str]:
        base = super().node_settings(node_id)
        secured = self.security.settings("")
        del secured["listeners"]
        if node_id in self.controller_ports:
            del secured["security.inter.broker.protocol"]
        return {
            **base,
            **secured,
            **_PLAIN,
            "listeners": base["listeners"].replace("PLAINTEXT://", "SASL_SSL://"),
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
            "authorizer.class.name": secured["authorizer.class.name"],
            # The brokers' user may not act on the controllers' listener: only ACLs in the store allow it.
            "super.users": "User:node" if node_id in self.controller_ports else "User:node;User:broker",
            "listener.name.controller.sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
        }

    async def start(self) -> None:
        """Start the controllers, add the first users and ACLs, and start the brokers."""
        controllers = await asyncio.gather(*map(self.start_controller, self.controller_ports))
        session = await self.controllers[101].connect()
        await session.ensure_all(znodes.PERSISTENT_PATHS)
        for path, data in first_nodes().items():
            await session.put(path, data)
        acl = {
            "principal": f"User:{CLIENT}",
            "permissionType": "Allow",
            "operation": "All",
            "host": "*",
        }
        data = json.dumps({"version": 1, "acls": [acl]}).encode()
        await session.put("/kafka-acl/Cluster/kafka-cluster", data)
        await session.close()
        for process in controllers:
            process.follow_security()
        await asyncio.gather(*map(self.start_broker, range(1, self.count + 1)))


async def test_brokers_with_users_in_the_store_replicate_beside_controllers_with_passwords(
    tmp_path: Path,
) -> None:
    cluster = SecuredQuorum(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 2 for broker in cluster.brokers.values()))
    with cluster.security.clients():
        assert await cluster.create_topic("orders", replicas=2) == ErrorCode.NONE
        await until(lambda: cluster.leader("orders") > 0 and cluster.isr("orders") == {1, 2})
        assert await cluster.produce(cluster.leader("orders"), "orders", b"one") == ErrorCode.NONE
    node = cluster.nodes[cluster.leader_id]
    epoch = node.machine.epoch
    # Users of the store log in to controllers, too, and the ACLs in the store decide what they may do.
    allowed = _scram(CLIENT, PASSWORDS[CLIENT])
    for _ in range(200):
        if not await _is_rejected(cluster, allowed):
            break
        await asyncio.sleep(0.1)  # The controllers read the users in the background.
    denied = _scram(BROKER, PASSWORDS[BROKER])
    assert await _vote(cluster, denied, epoch + 10) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(ConnectionError):
        await _vote(cluster, _scram(CLIENT, "wrong"), epoch + 10)
    assert await _vote(cluster, allowed, epoch - 1) == ErrorCode.NONE
    assert node.machine.epoch == epoch
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
