"""docs/troubleshoot.md has each message that the broker's log may have at WARN and above."""

from __future__ import annotations

import re

from tests.docs.messages import messages, normal
from tests.docs.write import DOCS

PAGE = (DOCS / "troubleshoot.md").read_text()


def test_each_message_is_listed_in_the_troubleshooting_page() -> None:
    told = {normal(quoted) for quoted in re.findall(r"`([^`\n]+)`", PAGE)}
    found = list(messages())
    assert len(found) > 90
    lost = [f"{message} ({path})" for message, path in found if not any(_says(one, message) for one in told)]
    assert lost == [], "docs/troubleshoot.md has to say why they come, and what to do"


def _says(quoted: str, message: str) -> bool:
    """A page may end a message earlier, or begin it later, if enough of it is there to be found."""
    return message in quoted or (len(quoted) >= 12 and quoted in message)


def test_messages_are_compared_regardless_of_their_values() -> None:
    assert normal("the move of …-… waits: …") == normal("the move of … waits: …")
    assert not _says("the move", "the move of waits")
