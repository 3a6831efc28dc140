"""The content of ACL nodes and change notices is read back unchanged, and invalid content is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.security.acls import bindings
from kafka_compat.security.acls.bindings import Entry, Pattern, PatternType, Permission
from kafka_compat.security.authorizer import Operation, ResourceType

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
patterns = st.builds(
    Pattern,
    st.sampled_from(bindings.RESOURCE_TYPES),
    texts,
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
)
entries = st.builds(
    Entry,
    st.builds("{}:{}".format, st.sampled_from(("User", "Group", "")), texts),
    texts,
    st.sampled_from(bindings.OPERATIONS),
    st.sampled_from(bindings.PERMISSIONS),
)
PATH = "/kafka-acl/Topic/orders"


@given(st.frozensets(entries, max_size=5))
def test_entries_are_read_back_unchanged(written: frozenset[Entry]) -> None:
    assert bindings.decode_acls(PATH, bindings.encode_acls(written)) == written


@given(patterns)
def test_notifications_are_read_back_unchanged(pattern: Pattern) -> None:
    decode = {
        PatternType.LITERAL: bindings.decode_literal_change,
        PatternType.PREFIXED: bindings.decode_extended_change,
    }[pattern.pattern_type]
    assert decode("/notice", bindings.encode_change(pattern)) == pattern


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(("", "User:a", "Read", "Allow", "*", "TOPIC")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "version",
                    "acls",
                    "principal",
                    "operation",
                    "permissionType",
                    "host",
                    "name",
                    "resourceType",
                )
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(json_values | st.binary(max_size=30))
def test_random_content_is_read_or_rejected(value: Any) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    for read in (bindings.decode_acls, bindings.decode_literal_change, bindings.decode_extended_change):
        try:
            read(PATH, data)
        except MalformedNode as error:
            assert error.path == PATH


def test_names_are_parsed_regardless_of_case() -> None:
    """As in Kafka, whose older versions wrote resource types differently."""
    acl = b'{"host":"*","permissionType":"ALLOW","operation":"CLUSTERACTION","principal":"User:a"}'
    written = b'{"version":1,"acls":[%s]}' % acl
    expected = Entry("User:a", "*", Operation.CLUSTER_ACTION, Permission.ALLOW)
    assert bindings.decode_acls(PATH, written) == {expected}
    for text in (b"TransactionalId:tx:1", b"TRANSACTIONAL_ID:tx:1"):
        pattern = bindings.decode_literal_change("/notice", text)
        assert pattern == Pattern(ResourceType.TRANSACTIONAL_ID, "tx:1", PatternType.LITERAL)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "a\x7f", "\ud800", "\U0001f600"])
def test_names_that_cannot_be_node_names_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a path"):
        bindings.path_of(Pattern(ResourceType.TOPIC, name, PatternType.LITERAL))
