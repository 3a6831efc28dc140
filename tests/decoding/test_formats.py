"""Conversion of arbitrary bytes to readable text."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.decoding.formats import FORMATS, Decoded, decoded, json_of
from kafka_compat.decoding.plain import FORMATS as WRITTEN
from kafka_compat.decoding.plain import NotSo, bytes_of, visible
from kafka_compat.decoding.wire_format import message_indexes


@pytest.mark.parametrize(
    ("content", "form", "text"),
    [
        (None, "null", None),
        (b"", "empty", ""),
        (b"plain words", "text", "plain words"),
        ("größer\n".encode(), "text", "größer\n"),
        (b'{"a":1.10,"a":2}', "json", '{\n  "a": 1.10,\n  "a": 2\n}'),
        (b"[]", "json", "[]"),
        (b"{not json", "text", "{not json"),
        (struct.pack(">i", 7), "integer", "7"),
        (struct.pack(">q", -1), "long", "-1"),
        (b"\x00\xff\x10", "hex", "00 ff 10"),
        (b"bell\x07", "hex", "62 65 6c 6c 07"),
        (b"\xff" * 5, "hex", "ff ff ff ff ff"),
    ],
)
def test_the_format_is_detected_by_default(content: bytes | None, form: str, text: str | None) -> None:
    found = decoded(content, "auto", {})
    assert (found.format, found.text, found.problem) == (form, text, None)
    assert found.size_bytes == (-1 if content is None else len(content))


@pytest.mark.parametrize(
    ("content", "asked", "text"),
    [
        (struct.pack(">d", 1.5), "double", "1.5"),
        (struct.pack(">f", 0.5), "float", "0.5"),
        (struct.pack(">h", -2), "short", "-2"),
        (b"abc", "hex", "61 62 63"),
        (b"abc", "base64", "YWJj"),
        (b"1", "json", "1"),
        (b"{}", "text", "{}"),
    ],
)
def test_a_value_is_decoded_in_the_requested_format(content: bytes, asked: str, text: str) -> None:
    assert decoded(content, asked, {}) == Decoded(asked, text, len(content))


@pytest.mark.parametrize(
    ("content", "asked", "form", "reason"),
    [
        (b"abc", "long", "text", "3 bytes, but a long has 8"),
        (b"\xff\xfe", "text", "hex", "not UTF-8: byte 0xff at 0"),
        (b"{", "json", "text", "not JSON"),
        (b"NaN", "json", "text", "not a JSON value"),
        (b"[" * 100_000, "json", "text", "not JSON"),
        (b"abc", "schema", "text", "as values of a schema registry do"),
    ],
)
def test_a_format_that_does_not_match_the_value_is_reported_with_the_reason(
    content: bytes, asked: str, form: str, reason: str
) -> None:
    found = decoded(content, asked, {})
    assert found.format == form and found.problem is not None and reason in found.problem


def test_a_large_value_is_truncated() -> None:
    whole = "ä" * 100
    found = decoded(whole.encode()[:21], "auto", {}, size_bytes=200)
    assert (found.format, found.text, found.size_bytes, found.is_cut) == ("text", "ä" * 10, 200, True)
    assert decoded(b"[1, 2", "auto", {}, size_bytes=900).format == "text"


@given(st.binary(max_size=200) | st.none(), st.sampled_from(FORMATS))
def test_any_bytes_can_be_shown_in_any_format(content: bytes | None, asked: str) -> None:
    found = decoded(content, asked, {})
    assert (found.text is None) == (content is None)
    json.dumps(found)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.integers()
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_indented_without_changing_its_content(value: object) -> None:
    for ensure_ascii in (True, False):
        text = json.dumps(value, ensure_ascii=ensure_ascii)
        assert json_of(text) == json.dumps(value, indent=2, ensure_ascii=ensure_ascii)


@pytest.mark.parametrize(
    ("text", "form", "content"),
    [
        ("a b", "text", b"a b"),
        ("00 fF", "hex", b"\x00\xff"),
        ("YWJj\n", "base64", b"abc"),
        ("-2", "short", b"\xff\xfe"),
        ("7", "integer", b"\0\0\0\7"),
        ("7", "long", b"\0\0\0\0\0\0\0\7"),
        ("1.5", "double", struct.pack(">d", 1.5)),
    ],
)
def test_entered_text_is_converted_to_bytes_in_the_chosen_format(
    text: str, form: str, content: bytes
) -> None:
    assert bytes_of(text, form) == content


@pytest.mark.parametrize(
    ("text", "form"),
    [("0", "hex"), ("é", "hex"), ("a", "base64"), ("1.5", "long"), ("70000", "short"), ("x", "double"),
     ("\ud800", "text"), ("1", "money")],
)  # fmt: skip
def test_invalid_input_is_rejected(text: str, form: str) -> None:
    with pytest.raises(NotSo):
        bytes_of(text, form)


@given(st.binary(max_size=64))
def test_displayed_text_can_be_entered_again(content: bytes) -> None:
    for form in ("hex", "base64"):
        shown = decoded(content, form, {}).text
        assert shown is not None and bytes_of(shown, form) == content
    assert set(WRITTEN) < {*FORMATS}


def test_invisible_characters_are_escaped() -> None:
    assert visible("a\x00b\u202ec\u2028\ue000\U000e0001") == "a\\x00b\\u202ec\\u2028\\ue000\\U000e0001"
    assert visible("a\tb\n", lines=True) == "a\tb\n" and visible("a\n") == "a\\x0a"


def test_protobuf_message_indexes_are_parsed() -> None:
    assert message_indexes(b"\x00rest") == ([0], b"rest")
    assert message_indexes(b"\x04\x02\x06rest") == ([1, 3], b"rest")
    for broken in (b"", b"\x04\x02", b"\x01", b"\xff\xff\xff\xff\x0f"):
        with pytest.raises(NotSo):
            message_indexes(broken)
