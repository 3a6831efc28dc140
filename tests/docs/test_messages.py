"""The list of messages in docs/troubleshoot.md, which must contain every log message at WARN and above."""

from __future__ import annotations

import re

from tests.docs.messages import messages, normal
from tests.docs.write import DOCS

PAGE = (DOCS / "troubleshoot.md").read_text()


def test_each_message_is_listed_on_the_troubleshooting_page() -> None:
    told = {normal(quoted) for quoted in re.findall(r"`([^`\n]+)`", PAGE)}
    found = list(messages())
    assert len(found) > 90
    lost = [f"{message} ({path})" for message, path in found if not any(_says(one, message) for one in told)]
    assert lost == [], "document causes and remedies in docs/troubleshoot.md"


def _says(quoted: str, message: str) -> bool:
    """Return whether the quoted text is a sufficiently long part of the message, or contains it."""
    return message in quoted or (len(quoted) >= 12 and quoted in message)


def test_messages_match_regardless_of_their_values() -> None:
    assert normal("the move of …-… waits: …") == normal("the move of … waits: …")
    assert not _says("the move", "the move of waits")
