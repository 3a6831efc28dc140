"""Rules for Kerberos principals give the same names as Kafka's KerberosShortNamer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_compat.security.kerberos_names import KerberosName, NoName, ShortNamer
from tests.oracle.sasl_oracle import SaslOracle
from tests.support import campaign


@pytest.fixture(scope="module")
def oracle() -> Iterator[SaslOracle]:
    with SaslOracle("3.9.1") as oracle:
        yield oracle


def _ours(rules: Sequence[str], principal: str) -> str:
    try:
        return ShortNamer("REALM", rules).short_name(KerberosName.parse(principal))
    except (NoName, ValueError):
        return "!"


_parts = st.sampled_from(["", "alice", "Alice", "kafka", "host.example", "REALM", "OTHER", "a.b", "0", "é"])
_principals = st.builds(
    lambda service, host, realm: service + host + realm,
    _parts,
    st.one_of(st.just(""), _parts.map("/{}".format)),
    st.one_of(
        st.just("@REALM"), st.just("@OTHER"), st.just(""), _parts.map("@{}".format), st.just("/x@REALM")
    ),
)
_rules = st.one_of(
    st.just("DEFAULT"),
    st.builds(
        "RULE:[{}:{}]{}{}{}".format,
        st.sampled_from(["1", "2", "1", "2", "3", "", "01"]),
        st.sampled_from(["$1", "$1@$0", "$2", "$1;$2", "$", "$9", "x", "", "$1$0", "$10", "$0x"]),
        st.sampled_from(
            ["", "(.*)", "(.*@REALM)", "(alice.*)", "()", "([a-z]+@OTHER)", "(a|k.*)", "(", "([)"]
        ),
        st.sampled_from(
            [
                "",
                "s/@.*//",
                "s/a/b/g",
                "s/a/b/",
                "s/^(.)/$0/",
                "s/e/$1/",
                "s/e/\\$/",
                "s/e/$/",
                "s/x*/-/g",
                "s/./",
                "s/e/\\/",
            ]
        ),
        st.sampled_from(["", "/L", "/U", "L", "/", "/X", " "]),
    ),
    st.sampled_from(["x", "default", "DEFAULTX", "RULE:[1:$1", "RULE:1:$1"]),
)


@settings(max_examples=10_000 if campaign.enabled() else 500)
@given(st.lists(_rules, min_size=1, max_size=3), _principals)
@example(["RULE:[2:$1@$0](kafka@.*)s/.*/broker/", "DEFAULT"], "kafka/host.example@REALM")
@example(["RULE:[1:$1@$0](.*@OTHER)s/@.*//L", "DEFAULT"], "Alice@OTHER")
def test_kerberos_names_are_mapped_as_in_kafka(oracle: SaslOracle, rules: list[str], principal: str) -> None:
    theirs = oracle.short_name("REALM", rules, principal)
    assert _ours(rules, principal) == ("!" if theirs.startswith("!") else theirs)
