"""Permissions that DescribeConfigs and AlterConfigs require, by type of resource, as in Apache Kafka 4.4."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import config_refusal
from kafka_compat.metadata.config_manager import ResourceType as ConfigType
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType


class Allowing:
    """An authorizer that allows one operation on one resource."""

    def __init__(self, *allowed: object) -> None:
        self._allowed = allowed

    def allows(self, principal: str, host: str, *asked: object, logged: bool) -> bool:
        return asked == self._allowed


@pytest.mark.parametrize("operation", [Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS])
@pytest.mark.parametrize(
    ("kind", "resource_type", "name", "code"),
    [
        (ConfigType.TOPIC, ResourceType.TOPIC, "x", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ConfigType.GROUP, ResourceType.GROUP, "x", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ConfigType.BROKER, ResourceType.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (
            ConfigType.CLIENT_METRICS,
            ResourceType.CLUSTER,
            CLUSTER_NAME,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_each_type_of_resource_requires_its_own_permission(
    operation: Operation, kind: ConfigType, resource_type: ResourceType, name: str, code: ErrorCode
) -> None:
    def refusal(*allowed: object) -> Any:
        ctx: Any = SimpleNamespace(authorizer=Allowing(*allowed), principal="User:a", client_host="h")
        return config_refusal(ctx, operation, kind, "x")

    assert refusal(operation, resource_type, name) is None
    assert refusal(Operation.DESCRIBE, resource_type, name).code == code
    assert refusal(operation, resource_type, "other").code == code
