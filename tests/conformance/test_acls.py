"""Creation, listing and deletion of ACLs, compared with Apache Kafka 3.9.1 with AclAuthorizer, and storage in
nodes that Apache Kafka can read.

Both brokers allow access to resources without ACLs. User:admin is the only super user.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain
from tests.support.acl_requests import (
    ALL,
    ALLOW,
    ALTER,
    ANY,
    AUTHORIZER,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOKEN,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    WRITE,
    acl,
    taking,
)
from tests.support.campaign import rounds
from tests.support.java_tools import JavaTools
from tests.support.servers import GenuineKafka, KafkaCompatBroker
from tests.tools.neutral import neutral_output

NONE, INVALID_REQUEST, UNKNOWN = 0, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    genuine = GenuineKafka(tmp_path_factory.mktemp("genuine-acls"), AUTHORIZER)
    genuine.start()
    ours = KafkaCompatBroker(tmp_path_factory.mktemp("our-acls"), AUTHORIZER)
    ours.start()
    yield ours.address, genuine.address
    ours.stop()
    # The last test denies this broker access to the cluster, so its controlled shutdown would fail.
    genuine.kill()
    genuine.stop()


@pytest.fixture
def pair(addresses: tuple[str, str]) -> Iterator[Pair]:
    found = Pair(*addresses)
    yield found
    found.both(ApiKey.DELETE_ACLS, 3, {"filters": [taking()]})
    found.close()


def create(pair: Pair, *acls: Plain) -> list[int]:
    """Create the ACLs, and return the error codes."""
    answer = pair.same(ApiKey.CREATE_ACLS, {"creations": list(acls)}, pair.versions(ApiKey.CREATE_ACLS, 1))
    return [item["error_code"] for item in answer["results"]]


def described(pair: Pair, **fields: object) -> set[tuple[object, ...]]:
    """Return the matching ACLs of both brokers as (type, name, pattern type, principal, operation)."""
    answer = pair.same(ApiKey.DESCRIBE_ACLS, taking(**fields), pair.versions(ApiKey.DESCRIBE_ACLS, 1))
    assert answer["error_code"] == NONE
    return {
        (
            item["resource_type"],
            item["resource_name"],
            item["pattern_type"],
            entry["principal"],
            entry["operation"],
        )
        for item in answer["resources"]
        for entry in item["acls"]
    }


def delete(pair: Pair, *filters: Plain) -> list[set[str]]:
    """Delete the ACLs that match the filters, and return the resource names that each filter matched. Only
    one version is requested, because a second request would find nothing.
    """
    answer = pair.same(ApiKey.DELETE_ACLS, {"filters": list(filters)}, [3])
    return [{item["resource_name"] for item in found["matching_acls"]} for found in answer["filter_results"]]


def closed(pair: Pair, api_key: ApiKey, request: Plain) -> None:
    version = pair.versions(api_key)[-1]
    assert pair.both(api_key, version, request) == [{"closed": True}] * 2


def test_acls_of_every_resource_type_are_created_and_listed(pair: Pair) -> None:
    assert described(pair) == set()
    wanted = [
        acl("orders"),
        acl("orders", permission_type=DENY, host="10.0.0.1", principal="User:CN=a,O=b:c"),
        acl("or", resource_pattern_type=PREFIXED, operation=ALL),
        acl("*", principal="User:*", operation=WRITE),
        acl("*", resource_pattern_type=PREFIXED),
        acl("a group, with: signs é", resource_type=GROUP),
        acl("kafka-cluster", resource_type=CLUSTER, operation=ALL, principal="User:*"),
        acl("tx", resource_type=TRANSACTIONAL_ID, operation=WRITE),
        acl("token", resource_type=TOKEN, operation=DESCRIBE),
        acl("User:bob", resource_type=USER, operation=13),
        acl("orders", operation=12, principal="Group:odd", host=""),
    ]
    assert create(pair, *wanted) == [NONE] * len(wanted)
    assert create(pair, wanted[0], wanted[0]) == [NONE, NONE], "creating the same ACL twice has no effect"
    assert len(described(pair)) == len(wanted)


def test_filters_select_the_same_acls_as_apache_kafka(pair: Pair) -> None:
    names = ("or", "orders", "orders-eu", "*", "other")
    kinds = (LITERAL, PREFIXED)
    acls = [acl(name, resource_pattern_type=kind) for name in names for kind in kinds]
    acls += [acl("orders", resource_type=GROUP), acl("orders", operation=WRITE, principal="User:bob")]
    create(pair, *acls)
    for name in (None, "or", "orders", "orders-eu-1", "*", "", "absent"):
        for kind in (ANY, MATCH, LITERAL, PREFIXED, 9):
            for of_type in (ANY, TOPIC, GROUP, USER, 99):
                described(
                    pair,
                    resource_name_filter=name,
                    pattern_type_filter=kind,
                    resource_type_filter=of_type,
                )
    matching = described(
        pair, resource_name_filter="orders-eu-1", pattern_type_filter=MATCH, resource_type_filter=TOPIC
    )
    assert {item[1:3] for item in matching} == {
        ("*", LITERAL),
        ("or", PREFIXED),
        ("orders", PREFIXED),
        ("orders-eu", PREFIXED),
    }
    for fields in (
        {"principal_filter": "User:bob"},
        {"principal_filter": "User:*"},
        {"host_filter": "*"},
        {"host_filter": "10.0.0.1"},
        {"operation": WRITE},
        {"operation": ALL},
        {"operation": 77},
        {"permission_type": DENY},
        {"permission_type": ALLOW},
        {"permission_type": 77},
    ):
        described(pair, **fields)


def test_version_0_supports_only_literal_names(pair: Pair) -> None:
    create(pair, acl("orders"), acl("or", resource_pattern_type=PREFIXED))
    pair.same(ApiKey.CREATE_ACLS, {"creations": [acl("old")]}, [0])
    answer = pair.same(ApiKey.DESCRIBE_ACLS, taking(pattern_type_filter=LITERAL), [0])
    assert {item["resource_name"] for item in answer["resources"]} == {"orders", "old"}
    answer = pair.same(ApiKey.DELETE_ACLS, {"filters": [taking(pattern_type_filter=LITERAL)]}, [0])
    assert len(answer["filter_results"][0]["matching_acls"]) == 2
    assert len(described(pair)) == 1


def test_invalid_acls_are_rejected(pair: Pair) -> None:
    assert create(pair, acl("orders", resource_type=CLUSTER), acl("fine")) == [INVALID_REQUEST, NONE]
    assert create(pair, acl("")) == [INVALID_REQUEST]
    assert create(pair, acl("a/b")) == [INVALID_REQUEST]
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        assert create(pair, acl("odd", **{field: 77}), acl("fine")) == [INVALID_REQUEST, NONE]
        assert create(pair, acl("odd", **{field: ANY}), acl("fine")) == [UNKNOWN, UNKNOWN]
        closed(pair, ApiKey.CREATE_ACLS, {"creations": [acl("fine"), acl("odd", **{field: 0})]})
    assert create(pair, acl("odd", resource_pattern_type=MATCH)) == [UNKNOWN]
    for principal in ("ann", ""):
        acls = acl("odd", principal=principal), acl("odd"), acl("fine")
        assert create(pair, *acls) == [UNKNOWN, UNKNOWN, NONE]
    for name in (".", "..", "a\x01b", "a\ue000b"):
        assert create(pair, acl(name), acl("fine")) == [UNKNOWN, NONE]
    assert {item[1] for item in described(pair)} == {"fine"}
    assert create(pair) == []


def test_invalid_filters_are_rejected(pair: Pair) -> None:
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        closed(pair, ApiKey.DESCRIBE_ACLS, taking(**{field: 0}))
        closed(pair, ApiKey.DELETE_ACLS, {"filters": [taking(**{field: 0})]})


def test_deletions_remove_the_same_acls_as_apache_kafka(pair: Pair) -> None:
    create(pair, *[acl(name, resource_pattern_type=kind) for name in ("a", "ab", "b") for kind in (3, 4)])
    create(pair, acl("a", operation=WRITE), acl("a", resource_type=GROUP))
    assert delete(pair, taking(resource_name_filter="absent")) == [set()]
    assert delete(pair, taking(operation=WRITE), taking(resource_name_filter="a")) == [{"a"}, {"a"}]
    first, second = delete(pair, taking(pattern_type_filter=PREFIXED), taking(resource_name_filter="ab"))
    assert (first, second) == ({"ab", "b"}, {"ab"}), "an ACL is reported for the first filter that matches it"
    named = {"resource_type_filter": TOPIC, "pattern_type_filter": LITERAL}
    for name in ("", ".", "a/b", "\x01"):
        assert delete(pair, taking(resource_name_filter=name, **named)) == [set()]
    assert delete(pair, taking(resource_type_filter=99), taking(pattern_type_filter=9)) == [set(), set()]
    assert delete(pair, taking(resource_name_filter="b", **named)) == [{"b"}]
    assert described(pair) == set()
    assert delete(pair) == []


def test_only_permitted_principals_can_describe_and_change_acls(pair: Pair) -> None:
    """CreateAcls and DeleteAcls require ALTER on the cluster; DescribeAcls requires DESCRIBE."""
    cluster = {"resource_type": CLUSTER, "operation": ALL, "principal": "User:*"}
    create(pair, acl("kafka-cluster", **cluster))
    denied = acl("kafka-cluster", **{**cluster, "operation": DESCRIBE, "permission_type": DENY})
    assert create(pair, denied) == [NONE]
    answer = pair.same(ApiKey.DESCRIBE_ACLS, taking(), pair.versions(ApiKey.DESCRIBE_ACLS, 1))
    assert answer["error_code"] == REFUSED
    assert delete(pair, taking(operation=DESCRIBE)) == [{"kafka-cluster"}]
    assert described(pair)
    from_elsewhere = {**cluster, "operation": ALTER, "permission_type": DENY, "host": "10.9.9.9"}
    assert create(pair, acl("kafka-cluster", **from_elsewhere)) == [NONE]
    assert create(pair, acl("fine")) == [NONE]


def test_random_requests_get_kafkas_responses(pair: Pair) -> None:
    """The responses and the stored ACLs are the same after any sequence of requests."""
    chance = random.Random(2904)
    names = ("a", "ab", "abc", "*", "kafka-cluster", "", "a/b", "a b")
    kinds = (TOPIC, TOPIC, TOPIC, GROUP, TRANSACTIONAL_ID, USER)
    principals, hosts = ("User:ann", "User:*", "User:bob", "nobody"), ("*", "10.0.0.1")
    operations, permissions = (ALL, READ, WRITE, DESCRIBE, 99), (DENY, ALLOW, ALLOW)

    def created() -> Plain:
        return acl(
            chance.choice(names),
            resource_type=chance.choice(kinds),
            resource_pattern_type=chance.choice((LITERAL, PREFIXED)),
            principal=chance.choice(principals),
            host=chance.choice(hosts),
            operation=chance.choice(operations),
            permission_type=chance.choice(permissions),
        )

    def taken() -> Plain:
        return taking(
            resource_type_filter=chance.choice((ANY, *kinds)),
            resource_name_filter=chance.choice((None, None, *names)),
            pattern_type_filter=chance.choice((ANY, MATCH, LITERAL, PREFIXED)),
            principal_filter=chance.choice((None, None, *principals)),
            host_filter=chance.choice((None, None, *hosts)),
            operation=chance.choice((ANY, ANY, *operations)),
            permission_type=chance.choice((ANY, ANY, *permissions)),
        )

    for _ in range(rounds(60, 2000)):
        creations = [created() for _ in range(chance.randrange(6))]
        pair.same(ApiKey.CREATE_ACLS, {"creations": creations}, [3])
        pair.same(ApiKey.DESCRIBE_ACLS, taken(), [3])
        if chance.random() < 0.4:
            filters = [taken() for _ in range(chance.randrange(4))]
            pair.same(ApiKey.DELETE_ACLS, {"filters": filters}, [3])
        described(pair)


TOOL = """
--list
--add --allow-principal User:* --operation All --cluster
--add --allow-principal User:ann --operation Read --topic orders
--add --allow-principal User:ann --allow-principal User:bob --allow-host 10.0.0.1 --producer --topic orders
--add --allow-principal User:bob --consumer --topic orders --group readers
--add --deny-principal User:eve --deny-host 10.0.0.9 --topic or --resource-pattern-type prefixed
--add --allow-principal User:ann --producer --idempotent --transactional-id tx --topic *
--add --allow-principal User:* --operation Describe --topic *
--add --allow-principal User:ann --operation CreateTokens --user-principal User:bob
--add --allow-principal ann --operation Read --topic orders
--add --allow-principal User:ann --operation Write --group readers
--list
--list --topic orders
--list --topic orders --resource-pattern-type match
--list --topic orders-eu --resource-pattern-type match
--list --topic orders --resource-pattern-type any
--list --principal User:bob
--list --principal User:bob --principal User:ann --group readers
--remove --force --allow-principal User:ann --operation Read --topic orders
--remove --force --allow-principal User:nobody --operation Read --topic orders
--remove --force --topic orders --resource-pattern-type any
--remove --force --topic or --resource-pattern-type prefixed
--list
--remove --force --cluster
--list
""".strip()


def test_kafka_acls_prints_the_same_output_as_on_apache_kafka(
    pair: Pair, addresses: tuple[str, str], tmp_path: Path
) -> None:
    tools = JavaTools()
    try:
        for line in TOOL.splitlines():
            printed = []
            for address in addresses:
                ran = tools.run("kafka-acls", "--bootstrap-server", address, *line.split())
                port = address.rpartition(":")[2]
                printed.append(neutral_output(ran, str(tmp_path), {port: "PORT"}))
            assert printed[0] == printed[1], line
    finally:
        tools.close()


def test_librdkafka_can_change_acls(pair: Pair, addresses: tuple[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": addresses[0]})
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.PREFIXED,
        "User:ann",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for created in admin.create_acls([binding]).values():
        created.result(10)
    unnamed: Any = None  # the type stubs require str, but None is valid
    every = AclBindingFilter(
        ResourceType.ANY,
        unnamed,
        ResourcePatternType.ANY,
        unnamed,
        unnamed,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(every).result(10) == [binding]
    (deleted,) = admin.delete_acls([every]).values()
    assert deleted.result(10) == [binding]
    assert admin.describe_acls(every).result(10) == []


def test_an_acl_on_the_cluster_locks_out_all_other_principals(pair: Pair) -> None:
    """This must be the last test of the module, because no client here can revoke the ACL."""
    assert create(pair, acl("fine")) == [NONE]
    nobody = acl("kafka-cluster", resource_type=CLUSTER, operation=ALTER, principal="User:bob")
    pair.same(ApiKey.CREATE_ACLS, {"creations": [nobody]}, [3])
    assert create(pair, acl("fine"), acl("")) == [REFUSED, REFUSED]
    answer = pair.same(ApiKey.DELETE_ACLS, {"filters": [taking(), taking()]})
    assert [item["error_code"] for item in answer["filter_results"]] == [REFUSED, REFUSED]
    answer = pair.same(ApiKey.DESCRIBE_ACLS, taking())
    assert answer["error_code"] == REFUSED
