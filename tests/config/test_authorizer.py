"""The setting authorizer.class.name and the authorizer's own settings."""

from __future__ import annotations

import pytest

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.config.authorizer import CLASSES
from tests.support.servers import run_kafka_compat

CLASS = {"authorizer.class.name": CLASSES[0]}


def config(**settings: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig.from_properties({**CLASS, **named})


def test_without_an_authorizer_everything_is_allowed() -> None:
    assert BrokerConfig.from_properties({}).authorizer is None
    nothing = BrokerConfig.from_properties({"authorizer.class.name": "", "super.users": "User:ann"})
    assert nothing.authorizer is None
    assert nothing.without_effect == ["super.users"]
    assert nothing.unknown == ()


@pytest.mark.parametrize("name", CLASSES)
def test_kafkas_own_authorizers_are_built_in(name: str) -> None:
    known = BrokerConfig.from_properties({"authorizer.class.name": f" {name} "})
    assert known.authorizer == ((), False)
    assert (known.unknown, known.without_effect) == ((), [])


def test_authorizer_settings_are_parsed() -> None:
    found = config(
        super_users="User:CN=a,O=b:c ; User:ann;;",
        allow_everyone_if_no_acl_found="TRUE",
        zookeeper_connect="zk:2181/kafka",
        authorizer_zookeeper_url="zk:2181/kafka",
        authorizer_zookeeper_session_timeout_ms="5",
    )
    assert found.authorizer == ((("User", "CN=a,O=b:c"), ("User", "ann")), True)
    assert found.unknown == ()
    assert found.without_effect == ["authorizer.zookeeper.session.timeout.ms"]


def test_misspelled_authorizer_settings_are_reported() -> None:
    """Without a warning, the broker would run without authorization unnoticed."""
    found = BrokerConfig.from_properties({"authorizer.class.nam": CLASSES[0], "super.user": "User:ann"})
    assert found.unknown == ("authorizer.class.nam", "super.user")
    assert found.unknown_with_guess("authorizer.class.nam").endswith("(did you mean authorizer.class.name?)")
    assert found.unknown_with_guess("super.user") == "super.user (did you mean super.users?)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer_class_name", "com.example.MyAuthorizer"),
        ("super_users", "ann"),
        ("allow_everyone_if_no_acl_found", "yes"),
        ("authorizer_zookeeper_url", "elsewhere:2181"),
    ],
)
def test_invalid_authorizer_settings_are_rejected(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config(**{name: value})
    assert refused.value.name == name.replace("_", ".")


def test_a_broker_does_not_start_with_an_unknown_authorizer() -> None:
    """Ignoring the setting would give every client full access."""
    ended = run_kafka_compat("serve", "--override", "authorizer.class.name=com.example.MyAuthorizer")
    assert ended.returncode == 2
    assert "com.example.MyAuthorizer" in ended.stderr
    assert CLASSES[0] in ended.stderr
