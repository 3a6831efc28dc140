"""Certificates are mapped to the same principal names as by Java's and Kafka's own classes."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.config import ConfigError
from kafka_compat.security.distinguished_names import rfc2253, subject
from kafka_compat.security.java_regex import compile_java
from kafka_compat.security.principal_mapping import NoMatchingRule, PrincipalMapper
from tests.oracle.ssl_oracle import Refused, SslOracle
from tests.support.campaign import rounds
from tests.support.certificates import authority


@pytest.fixture(scope="module")
def kafka() -> Iterator[SslOracle]:
    with SslOracle("3.9.1") as oracle:
        yield oracle


# -- names

KEYWORDS = ("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11")
OTHER_TYPES = ("0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25", "1.2.840.113549.1.9.1", "2.5.4.5")
STRING_TAGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
OTHER_TAGS = (0x02, 0x04, 0x12, 0x1A, 0x1C)

texts = st.text(' ,=+<>#;"\\\0\r\nabcÄ€😀\u0300/:', max_size=8).map(str.encode)
odd_bytes = st.lists(st.sampled_from(list(b"A\x80\xa0\xbf\xc3\xe0\xe1\xed\xf0\xf4\x90")), max_size=6).map(
    bytes
)


def tlv(tag: int, content: bytes) -> bytes:
    size = bytes([len(content)]) if len(content) < 128 else b"\x82" + len(content).to_bytes(2)
    return bytes([tag]) + size + content


def encoded_oid(dotted: str) -> bytes:
    first, second, *others = map(int, dotted.split("."))
    encoded = b""
    for number in (first * 40 + second, *others):
        septets = [number & 127]
        while number := number >> 7:
            septets.append(number & 127 | 128)
        encoded += bytes(reversed(septets))
    return tlv(6, encoded)


attributes = st.builds(
    lambda dotted, tag, value: tlv(0x30, encoded_oid(dotted) + tlv(tag, value)),
    st.sampled_from((*KEYWORDS, *OTHER_TYPES)),
    st.sampled_from((*STRING_TAGS, *STRING_TAGS, *OTHER_TAGS)),
    texts | odd_bytes,
)
names = st.lists(
    st.lists(attributes, min_size=1, max_size=3).map(lambda parts: tlv(0x31, b"".join(parts))), max_size=4
).map(lambda parts: tlv(0x30, b"".join(parts)))


@given(name=names)
@settings(max_examples=rounds(300, 5_000))
def test_distinguished_names_are_written_as_in_java(kafka: SslOracle, name: bytes) -> None:
    try:
        expected = kafka.name(name)
    except Refused:
        return
    assert rfc2253(name) == expected


def test_the_example_in_javas_documentation_is_written_as_documented(kafka: SslOracle) -> None:
    owner = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Sun Microsystems, Inc."),
            x509.NameAttribute(NameOID.COMMON_NAME, "Steve Kille"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b"),
        ]
    )
    found = rfc2253(subject(authority().issue(owner).der()))
    assert found == "1.2.840.113549.1.9.1=#1603614062,CN=Steve Kille,O=Sun Microsystems\\, Inc.,C=US"
    assert found == kafka.name(owner.public_bytes())


@given(content=st.binary(max_size=60))
def test_invalid_certificates_are_rejected(content: bytes) -> None:
    with pytest.raises(ValueError):
        subject(content)


# -- rules

NAME = "CN=kafka-1.Example.COM,OU=Ünit\\, two,O=Acme,L=Köln,C=DE"
OTHER_NAMES = ("CN=x", "", "CN=a+OU=b,O=c", "OU=a,CN=b\\=c")


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULT",
        "",
        " ",
        ",",
        ",,DEFAULT",
        "RULE:^CN=(.*?),OU=.*$/$1/",
        "RULE:^CN=(.*?),OU=.*$/$1/L",
        "RULE:^CN=(.*?),OU=.*$/$1/U",
        "RULE:^cn=(.*?),ou=.*$/$1/, DEFAULT",
        "RULE:^cn=(.*?),ou=.*$/$1/",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),C=(.*?)$/$1@$2/L , RULE:^.*$/none/,DEFAULT",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.-]*).*$/$1/L,DEFAULT",
        r"RULE:^CN=([\w.-]+),.*$/user\/$1/",
        r"RULE:^CN=(?<host>[^,]++),.*$/${host}/",
        r"RULE:^CN=([^,]*),.*$/$1@$4/",
        r"RULE:^CN=([^,]*),.*$/$12/",
        r"RULE:^CN=([^,]*),.*$/$0/",
        r"RULE:^CN=([^,]*),.*$/\$1/",
        r"RULE:.*/x/",
        r"RULE:a|CN=.*/x/",
        r"RULE:(?i)^cn=([^,]*),.*$/$1/",
        r"RULE:(?i:cn)=([^,]*),.*/$1/",
        r"RULE:CN=\Qkafka-1.\E(.*?),.*/$1/",
        r"RULE:CN=\p{Alpha}+-\p{Digit}\.[\p{Upper}x]\p{Lower}+\.([\p{Alnum}]+),.*/$1/",
        r"RULE:CN=(\P{Punct}+)-.*/$1/",
        r"RULE:.*\bOU=(\S+)\s.*/$1/",
        r"RULE:CN=(\w+)-.*\x2c\u004f.*\z/$1/",
        r"RULE:CN=(?>[^,]*),(.*)\Z/$1/",
        r"RULE:(?<a>C)N=.*,\k<a>=..(?=\z)/$1/",
        r"RULE:CN=.{4,20}?,(?:.|\R)*/x/U",
        r"RULE:\h*CN=([^\h,]*),.*/$1/",
        r"RULE:CN=([^]x]*?),.*/$1/",
        r"RULE:^(.)(.)=(.*)$/$3$2$1/",
        "DEFAULT,RULE:^CN=(.*)$/$1/",
    ],
)
def test_rules_map_names_as_in_kafka(kafka: SslOracle, rules: str) -> None:
    mapper = PrincipalMapper(rules)
    for name in (NAME, *OTHER_NAMES):
        try:
            expected = kafka.mapped(rules, name)
        except Refused as refused:
            assert "No rules apply" in str(refused)
            with pytest.raises(NoMatchingRule):
                mapper.name(name)
        else:
            assert mapper.name(name) == expected


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAULTS",
        "RULE:",
        "RULE:a",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:a/b/LU",
        "RULE:a/b/,RULE",
        "RULE:(/b/",
        "RULE:[a/b/",
        "RULE:*/b/",
        "RULE:(?P<n>a)/b/",
        r"RULE:\y/b/",
        r"RULE:\p{Nothing}/b/",
    ],
)
def test_invalid_rules_abort_startup(kafka: SslOracle, rules: str) -> None:
    with pytest.raises(Refused):
        kafka.mapped(rules, NAME)
    with pytest.raises(ConfigError, match=r"configuration ssl\.principal\.mapping\.rules: Invalid rule"):
        PrincipalMapper(rules)


@pytest.mark.parametrize(
    "rules", ["RULE:a/$1/", "RULE:(a)/${b}/", "RULE:a/$/", r"RULE:[a&&[b]]/b/", r"RULE:\p{L}/b/"]
)
def test_rules_that_kafka_rejects_when_a_client_connects_abort_startup(rules: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rule"):
        PrincipalMapper(rules)


pieces = st.sampled_from(
    [
        *("CN", "=", ",", "O", "a", ".", r"\.", r"\w", r"\W", r"[a-c]", "[^,=]", r"\p{Upper}", r"\d", r"\s"),
        *(r"[\p{Alpha}.]", r"\S", "^", "$", "|", r"\b", r"\h", r"\x43", r"\Q.\E", "(?i:c)", "(?=C)"),
    ]
)
counts = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "{1,2}", "*+"])
atoms = st.builds(lambda piece, count: piece if piece in "^$|" else piece + count, pieces, counts)
groups = st.lists(atoms, min_size=1, max_size=4).map("".join).map("({})".format)
patterns = st.lists(atoms | groups, min_size=1, max_size=5).map("".join)
replacements = st.lists(st.sampled_from(["$0", "$1", "x", r"\/", r"\$", "@", "é"]), max_size=3).map("".join)
owners = st.lists(st.sampled_from(["CN", "O", "=", ",", "a", "b", "Äb", ".", "\\,", " "]), max_size=8).map(
    "".join
)


@given(pattern=patterns, replacement=replacements, case=st.sampled_from(["", "L", "U"]), name=owners)
@settings(max_examples=rounds(300, 5_000))
def test_random_rules_map_names_as_in_kafka(
    kafka: SslOracle, pattern: str, replacement: str, case: str, name: str
) -> None:
    rules = f"RULE:{pattern}/{replacement}/{case}"
    try:
        expected: str | None = kafka.mapped(rules, name)
    except Refused as refused:
        expected = None
        if "No rules apply" not in str(refused):
            # The pattern or a group reference is invalid. Kafka reports the group only when a name matches.
            with pytest.raises((ConfigError, NoMatchingRule)):
                PrincipalMapper(rules).name(name)
            return
    try:
        found: str | None = PrincipalMapper(rules).name(name)
    except NoMatchingRule:
        found = None
    except ConfigError as error:
        assert "No group" in str(error)
        return
    assert found == expected


def test_the_principal_is_derived_from_the_certificate() -> None:
    shown = authority().issue("client-7").der()
    assert str(PrincipalMapper("DEFAULT").principal(shown)) == "User:CN=client-7"
    assert str(PrincipalMapper("RULE:^CN=(.*)$/$1/U").principal(shown)) == "User:CLIENT-7"


def test_a_rule_that_takes_exponential_time_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    harmless = (
        "RULE:^CN=(.*?),OU=.*$/$1/",
        "RULE:(a*+)+/b/",
        "RULE:(?>a*)+/b/",
        "DEFAULT",
        "RULE:(ab){2}c+/b/",
    )
    with caplog.at_level(logging.WARNING):
        for rules in harmless:
            PrincipalMapper(rules)
        assert caplog.text == ""
        PrincipalMapper("RULE:^(a+)+$/b/")
    assert "Rule RULE:^(a+)+$/b/ in ssl.principal.mapping.rules has nested quantifiers" in caplog.text


def test_a_dot_does_not_match_javas_line_terminators() -> None:
    for end in "\n\r\x85\u2028\u2029":
        assert not compile_java("a.b").fullmatch(f"a{end}b")
        assert compile_java("(?s)a.b").fullmatch(f"a{end}b")
