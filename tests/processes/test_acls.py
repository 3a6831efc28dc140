"""ACLs of brokers started by one command: each broker applies ACLs created on another, whether they share a
process or only the store.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Closed, Connection
from tests.processes.command import Command
from tests.support.acl_requests import AUTHORIZER, acl, taking
from tests.support.process import wait_until


def create(port: int, name: str) -> None:
    with Connection(f"127.0.0.1:{port}") as connection:
        (result,) = connection.ask(ApiKey.CREATE_ACLS, 3, {"creations": [acl(name)]})["results"]
    assert result["error_code"] == ErrorCode.NONE


def names(port: int) -> set[str]:
    try:
        with Connection(f"127.0.0.1:{port}") as connection:
            answer = connection.ask(ApiKey.DESCRIBE_ACLS, 3, taking())
    except (OSError, Closed):
        return set()
    return {item["resource_name"] for item in answer["resources"]}


def agree(command: Command, expected: set[str]) -> None:
    wait_until(
        lambda: all(names(command.port + number) == expected for number in range(command.count)),
        20,
        "the ACLs on all brokers",
    )


@pytest.mark.parametrize("option", ["--processes", "--brokers"])
def test_acls_apply_on_all_brokers(tmp_path: Path, option: str) -> None:
    with Command(tmp_path, 2, AUTHORIZER, option=option) as command:
        create(command.port, "one")
        create(command.port + 1, "two")
        agree(command, {"one", "two"})
        if option == "--processes":
            command.kill(2)
            create(command.port, "three")
            agree(command, {"one", "two", "three"})
