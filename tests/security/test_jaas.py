"""Values of sasl.jaas.config are parsed, or rejected without showing secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.security import jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{MODULE} required;", {}),
        (f'{MODULE} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"  {MODULE}\n  REQUIRED\n  user_x='y' ; ", {"user_x": "y"}),
        (
            f"{MODULE} required useKeyTab=true keyTab=/etc/a.keytab;",
            {"useKeyTab": "true", "keyTab": "/etc/a.keytab"},
        ),
        (f'{MODULE} sufficient a="x;y=z \\" \\\\";', {"a": 'x;y=z " \\'}),
    ],
)
def test_valid_entries_are_parsed(text: str, options: dict[str, str]) -> None:
    module = jaas.parse(text)
    assert (module.name, module.options) == (MODULE, options)
    assert "username" not in repr(module)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        MODULE,
        f"{MODULE} required",
        f"{MODULE} maybe;",
        f'{MODULE} required password="hidden"',
        f'{MODULE} required password="hidden;',
        f"{MODULE} required password;",
        f"{MODULE} required password=;",
        f"{MODULE} required; {MODULE} required;",
    ],
)
def test_invalid_entries_are_rejected_without_showing_secrets(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        jaas.parse(text)
    assert "hidden" not in str(refused.value)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,10}", fullmatch=True), st.text()))
def test_quoted_values_are_unchanged_after_parsing(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    written = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert jaas.parse(f"{MODULE} required {written};").options == options
