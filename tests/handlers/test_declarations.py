"""Handlers' declarations of APIs and versions: they match the table that the broker loads at startup."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka_compat.api.handler import handler
from kafka_compat.handlers.declared import TABLE, declarations, table
from kafka_compat.handlers.served import (
    CLUSTER_SERVED,
    CONTROLLER_SERVED,
    QUORUM_SERVED,
    SERVED,
    TELEMETRY_SERVED,
)
from kafka_compat.protocol.messages import request_class, response_class
from kafka_compat.protocol.schema import schema_of


def test_the_declaration_table_matches_the_handlers() -> None:
    remedy = "run python -m kafka_compat.handlers.declared"
    assert TABLE.read_text() == table(), remedy
    assert {one.api_key: (one.low, one.high) for one in declarations()} == {
        **CLUSTER_SERVED,
        **TELEMETRY_SERVED,
        **QUORUM_SERVED,
    }, remedy
    assert {
        one.api_key: (one.low, one.high)
        for one in declarations()
        if not (one.cluster or one.telemetry or one.quorum)
    } == SERVED


def test_every_served_version_has_a_schema() -> None:
    served = (CLUSTER_SERVED, TELEMETRY_SERVED, QUORUM_SERVED, CONTROLLER_SERVED)
    for key, (low, high) in (item for apis in served for item in apis.items()):
        for cls in (request_class(key), response_class(key)):
            known = schema_of(cls).versions
            assert low in known and high in known, f"{cls.__name__}: {known}"


def test_a_handler_is_named_after_its_api() -> None:
    with pytest.raises(TypeError, match="no API is named fetches"):

        @handler(0, 1)
        def fetches() -> None:
            """The function name does not match an API."""


def test_a_broker_starts_without_importing_its_handlers() -> None:
    """Importing all handlers takes longer than the rest of startup."""
    program = (
        "import sys, kafka_compat.broker\n"
        "print(*(name for name in sys.modules if name.startswith('kafka_compat.handlers.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kafka_compat.handlers.served"]
