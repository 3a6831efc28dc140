"""Java's .properties syntax, parsed like java.util.Properties."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_compat.config.properties import parse_properties, write_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a: b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("  # comment\n! comment\n\na=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one,\\\n   two,\\\n\tthree", {"a": "one,two,three"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\ b\\==c", {"a b=": "c"}),
        ("a=\\u00e9\\t|\\q", {"a": "é\t|q"}),
        ("a=C:\\\\data", {"a": "C:\\data"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=#no comment", {"a": "#no comment"}),
        ("a=x\\", {"a": "x"}),
        ("\ufeffa=u", {"a": "u"}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, properties: dict[str, str]) -> None:
    assert {name: entry.value for name, entry in parse_properties(text.encode()).items()} == properties


def test_a_file_is_decoded_as_iso_8859_1_as_in_java() -> None:
    assert parse_properties("a=ü\nb=u".encode("iso-8859-1")) == {"a": ("ü", 1, None), "b": ("u", 2, None)}


def test_a_valid_utf_8_file_is_also_decoded_as_utf_8() -> None:
    found = parse_properties("# ü\na=ü\nb=\\u00fc\nü=1\n".encode())
    assert found == {"a": ("Ã¼", 2, "ü"), "b": ("ü", 3, None), "Ã¼": ("1", 4, None)}


def test_an_invalid_unicode_escape_is_reported_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_properties(b"a=1\nb=\\u12g4\n")


@given(properties=st.dictionaries(st.text(min_size=1), st.text()))
@example(properties={"a": "one\n  two\n", "#b c=:": " \\x\t😀ü"})
def test_written_properties_are_read_back_unchanged(properties: dict[str, str]) -> None:
    try:
        written = write_properties(properties)
    except UnicodeEncodeError:
        return
    assert written.isascii()
    assert {name: entry.value for name, entry in parse_properties(written.encode()).items()} == properties
