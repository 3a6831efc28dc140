"""The table of views, actions and downloads of messages and offsets."""

from __future__ import annotations

from typing import Final

from kafka_compat.page.view import Action, Download, View
from kafka_compat.page.views import copy, message, messages, offsets, produce
from kafka_compat.search.query import PARAMETERS

_NAME: Final = {"name": "string: of which"}

VIEWS: Final = (
    View(
        "/messages",
        messages.see,
        "messages.html",
        "Messages",
        "search in the messages of a topic",
        "/topics",
        {**_NAME, **PARAMETERS},
    ),
    View(
        "/message",
        message.see,
        "message.html",
        "Message",
        "one message in full",
        "/topics",
        message.QUERY,
    ),
    View(
        "/produce",
        produce.see,
        "produce.html",
        "Produce",
        "what a record can be given",
        "/topics",
        _NAME,
    ),
    View("/copy", copy.see, "copy.html", "Copy", "copies of topics", "/topics", _NAME),
    View(
        "/offsets",
        offsets.see,
        "offsets.html",
        "Offsets",
        "the offsets of a group",
        "/groups",
        {**_NAME, "moved": "integer: how many were changed"},
    ),
)
ACTIONS: Final[tuple[Action, ...]] = (
    Action("/produce", produce.act, "append a record to a topic", produce.BODY),
    Action("/copy", copy.act, "copy a topic", copy.BODY),
    Action("/offsets-plan", offsets.propose, "what other offsets would do to a group", offsets.PLAN_BODY),
    Action("/offsets", offsets.act, "change the offsets of a group", offsets.COMMIT_BODY),
)
DOWNLOADS: Final = (
    Download("/message-data", message.give, "the key or the value of a message", message.DATA_QUERY),
)
