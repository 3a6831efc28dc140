"""Texts of the product do not share eight consecutive words with Kafka's texts. The comparisons of commands
ignore differences in wording only.
"""

from __future__ import annotations

import pytest

from tests.tools import own_words, wording
from tests.tools.own_words import EXCEPTIONS, MESSAGES, RUN, Text, findings, literals, our_texts, runs_of

KAFKAS = "Cannot execute because there is an existing partition assignment in the cluster"
TABLE = """Move replicas.
Option                    Description
------                    -----------
--list                    {list}
* --topic <String: name>  REQUIRED: the topic (default: t)
"""


@pytest.fixture(scope="module")
def kafkas_runs() -> set[str]:
    return own_words.kafkas_runs()


def test_our_texts_never_repeat_eight_consecutive_words_of_kafkas_texts(kafkas_runs: set[str]) -> None:
    found = findings(our_texts(), kafkas_runs)
    assert not found, "\n".join(map(str, found))


def test_every_listed_exception_is_needed(kafkas_runs: set[str]) -> None:
    texts = [(text, runs_of(iter([text.text])) & kafkas_runs) for text in our_texts()]
    repeated = set().union(*(runs for _, runs in texts))
    assert [text for text in EXCEPTIONS if not runs_of(iter([text])) & repeated] == []
    needed = {prefix for prefix in MESSAGES for text, runs in texts if runs and text.path.startswith(prefix)}
    assert set(MESSAGES) - needed == set()


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        (f'x = "{KAFKAS}"', True),
        (f'x = "{KAFKAS.replace("an existing", "another")}"', False),
        ('x = f"Cannot execute because there is {a}an EXISTING partition-assignment"', True),
        (f'"""{KAFKAS}"""', True),
        ('x = "Cannot execute because there is" "\\n an existing partition assignment"', True),
    ],
)
def test_words_repeated_from_kafka_are_found_in_literals(source: str, is_found: bool) -> None:
    found = findings(literals("kafka_compat/tools/x.py", source), runs_of(iter([KAFKAS])))
    assert bool(found) == is_found


def test_kafkas_wording_is_allowed_in_compared_messages_but_not_in_docstrings() -> None:
    name = next(iter(MESSAGES))
    source = f'"""{KAFKAS}"""\nx = "{KAFKAS}"'
    assert [found.line for found in findings(literals(name, source), runs_of(iter([KAFKAS])))] == [1]


def test_a_finding_contains_all_repeated_words() -> None:
    text = Text("docs/start.md", 1, f"It says: {KAFKAS.upper()}, and more.")
    (found,) = findings(iter([text]), runs_of(iter([KAFKAS])))
    assert found.words == KAFKAS.lower() and len(found.words.split()) > RUN


def test_help_texts_are_compared_by_flags_and_argument_types() -> None:
    shown = wording.without_wording(TABLE.format(list="List them."), is_genuine=True)
    assert "<String:name> required t" in shown and "List them" not in shown
    assert wording.without_wording(TABLE.format(list="All."), is_genuine=True) == shown
    for old, new in (("--list", "--all"), ("* --topic", "--title"), ("<String", "<Long"), (" t)", " u)")):
        assert wording.without_wording(TABLE.replace(old, new), is_genuine=True) != shown


def test_a_required_flag_is_shown_as_required() -> None:
    optional = TABLE.replace("* --topic", "--topic").replace("REQUIRED: ", "")
    assert wording.without_wording(optional, True) != wording.without_wording(TABLE, True)


def test_kafkas_messages_are_replaced_with_ours_with_the_same_values() -> None:
    kafkas = (
        "Error: Assignments can only be reset if the group 'g' is inactive, but the current state is Stable."
    )
    ours = "Error: Offsets can only be reset while the group 'g' is inactive; its state is Stable."
    assert wording.without_wording(kafkas, is_genuine=True) == ours
    assert wording.without_wording(ours, is_genuine=False) == ours


def test_kafkas_error_texts_are_replaced_with_the_error_codes() -> None:
    assert len(wording.kafkas_error_texts()) > 130
    kafkas = "UnknownTopicOrPartitionException: This server does not host this topic-partition."
    ours = "UnknownTopicOrPartitionException: The broker has no replica of this partition."
    expected = "UnknownTopicOrPartitionException: [UNKNOWN_TOPIC_OR_PARTITION]"
    assert wording.without_wording(kafkas, is_genuine=True) == expected
    assert wording.without_wording(ours, is_genuine=False) == expected
