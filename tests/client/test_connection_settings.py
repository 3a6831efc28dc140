"""The Java client settings that this client accepts, and the errors it reports for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.client.connection_settings import (
    WrongSettings,
    addresses,
    connection_settings,
    read_settings,
    whole_number,
)


def test_bootstrap_servers_are_split_into_hosts_and_ports() -> None:
    assert addresses("one:9092, two:9093,[::1]:9094") == [("one", 9092), ("two", 9093), ("::1", 9094)]


@pytest.mark.parametrize("text", ["", "one", "one:port", "one:0", "one:65536", ":9092"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(WrongSettings):
        addresses(text)


def test_the_error_for_an_unknown_security_protocol_lists_the_known_protocols() -> None:
    with pytest.raises(WrongSettings, match="PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        connection_settings({"security.protocol": "TLS"}, 10)


def test_the_default_connection_uses_neither_tls_nor_authentication() -> None:
    settings = connection_settings({}, 10)
    assert (settings.security_protocol, settings.tls, settings.mechanism) == ("PLAINTEXT", None, None)


def test_a_properties_file_is_parsed_as_in_java(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# comment\nsasl.mechanism = PLAIN\nclient.id: a\\u00e4\\\n  b\n")
    assert read_settings(str(path)) == {"sasl.mechanism": "PLAIN", "client.id": "aäb"}


def test_integer_settings_have_the_range_of_javas_types() -> None:
    assert whole_number({"batch.size": str(2**31 - 1)}, "batch.size", 1) == 2**31 - 1
    assert whole_number({"max.block.ms": str(2**63 - 1)}, "max.block.ms", 1) == 2**63 - 1
    for name, text, kind in (
        ("fetch.max.bytes", str(2**31), "INT"),
        ("max.block.ms", str(2**63), "LONG"),
        ("batch.size", "9" * 5000, "INT"),
    ):
        with pytest.raises(ValueError, match=f"for configuration {name}: Not a number of type {kind}"):
            whole_number({name: text}, name, 1)


def test_a_non_numeric_integer_setting_is_rejected_by_name() -> None:
    assert whole_number({"linger.ms": " 5 "}, "linger.ms", 0) == 5
    with pytest.raises(ValueError, match=r"linger\.ms"):
        whole_number({"linger.ms": "five"}, "linger.ms", 0)
