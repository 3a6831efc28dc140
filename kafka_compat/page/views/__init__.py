"""Table of the page's views, each implemented in its own module."""

from __future__ import annotations

from typing import Final

from kafka_compat.page.listing import QUERY
from kafka_compat.page.views import (
    brokers,
    copy,
    groups,
    messages,
    offsets,
    overview,
    process,
    produce,
    topics,
    transactions,
)
from kafka_compat.page.visit import Action, Download, View
from kafka_compat.search.query import PARAMETERS

_NAME: Final = {"name": "string: of which"}
_LISTED: Final = {**_NAME, **QUERY}
_LEVEL: Final = {"level": "string: INFO, WARN or ERROR, for lines that are at least as grave"}
_READ: Final = {"topic": "string: a topic that they read"}
_SETTINGS: Final = "the settings of a topic, and where each comes from"
_MOVED: Final = {"moved": "integer: how many were changed"}

VIEWS: Final = (
    View("/overview", overview.see, "Overview", "is it well, and why not"),
    View("/topics", topics.see, "Topics", "all topics", query=QUERY),
    View("/topic", topics.see_one, "Topic", "one topic", "/topics", _LISTED),
    View("/topic-settings", topics.see_settings, "Settings of a topic", _SETTINGS, "/topics", _NAME),
    View("/groups", groups.see, "Groups", "all groups", query={**QUERY, **_READ}),
    View("/group", groups.see_one, "Group", "one group", "/groups", _LISTED),
    View("/transactions", transactions.see, "Transactions", "all transactional ids", query=QUERY),
    View("/brokers", brokers.see, "Brokers", "all brokers"),
    View(
        "/broker",
        brokers.see_one,
        "Broker",
        "one broker with its settings",
        "/brokers",
        {"id": "integer: its id"},
    ),
    View("/disks", brokers.see_disks, "Disks", "log directories and their space"),
    View("/clients", process.see_clients, "Clients", "who is connected", query=QUERY),
    View("/refused", process.see_refused, "Refused", "who was refused, and why", query=QUERY),
    View("/logs", process.see_logs, "Logs", "the last lines of the log", query={**QUERY, **_LEVEL}),
    View(
        "/messages",
        messages.see,
        "Messages",
        "search in the messages of a topic",
        "/topics",
        {**_NAME, **PARAMETERS},
    ),
    View("/message", messages.see_one, "Message", "one message in full", "/topics", messages.QUERY),
    View("/produce", produce.see, "Produce", "what a record can be given", "/topics", _NAME),
    View("/copy", copy.see, "Copy", "copies of topics", "/topics", _NAME),
    View("/offsets", offsets.see, "Offsets", "the offsets of a group", "/groups", {**_NAME, **_MOVED}),
)
ACTIONS: Final = (
    Action("/produce", produce.act, "append a record to a topic", produce.BODY),
    Action("/copy", copy.act, "copy a topic", copy.BODY),
    Action("/offsets-plan", offsets.propose, "what other offsets would do to a group", offsets.PLAN_BODY),
    Action("/offsets", offsets.act, "change the offsets of a group", offsets.COMMIT_BODY),
)
DOWNLOADS: Final = (
    Download("/message-data", messages.give, "the key or the value of a message", messages.DATA_QUERY),
)
