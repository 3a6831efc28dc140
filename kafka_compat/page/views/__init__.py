"""Table of the web console's views, each implemented in its own module."""

from typing import Final

from kafka_compat.page.listing import QUERY
from kafka_compat.page.views import (
    brokers,
    copy,
    groups,
    hour,
    latest,
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

_NAME: Final = {"name": "string: name"}
_LISTED: Final = {**_NAME, **QUERY}
_LEVEL: Final = {"level": "string: INFO, WARN or ERROR: lowest level to return"}
_READ: Final = {"topic": "string: only groups with offsets in this topic"}
_SETTINGS: Final = "settings of a topic, and their sources"
_MOVED: Final = {"moved": "integer: number of changed offsets"}

VIEWS: Final = (
    View("/overview", overview.see, "Overview", "health, problems and key figures"),
    View("/hour", hour.see, "Last hour", "charts of the last hour"),
    View("/chart", hour.see_one, "Chart", "one chart of the last hour", "/hour", hour.QUERY),
    View("/topics", topics.see, "Topics", "all topics", query=QUERY),
    View("/topic", topics.see_one, "Topic", "one topic", "/topics", _LISTED),
    View("/topic-settings", topics.see_settings, "Settings of a topic", _SETTINGS, "/topics", _NAME),
    View("/groups", groups.see, "Groups", "all groups", query={**QUERY, **_READ}),
    View("/group", groups.see_one, "Group", "one group", "/groups", _LISTED),
    View("/transactions", transactions.see, "Transactions", "all transactional IDs", query=QUERY),
    View("/brokers", brokers.see, "Brokers", "all brokers"),
    View(
        "/broker",
        brokers.see_one,
        "Broker",
        "one broker with its settings",
        "/brokers",
        {"id": "integer: broker ID"},
    ),
    View("/disks", brokers.see_disks, "Disks", "log directories and their free space"),
    View("/clients", process.see_clients, "Clients", "connected clients", query=QUERY),
    View("/refused", process.see_refused, "Rejected", "rejected clients, and the reasons", query=QUERY),
    View("/logs", process.see_logs, "Logs", "latest lines of the log", query={**QUERY, **_LEVEL}),
    View(
        "/messages",
        messages.see,
        "Messages",
        "search the messages of a topic",
        "/topics",
        {**_NAME, **PARAMETERS},
    ),
    View("/message", messages.see_one, "Message", "one complete message", "/topics", messages.QUERY),
    View("/latest", latest.see, "Latest per key", "latest value per key of a topic", "/topics", latest.QUERY),
    View("/produce", produce.see, "Produce", "fields of a record to produce", "/topics", _NAME),
    View("/copy", copy.see, "Copy", "copies of topics", "/topics", _NAME),
    View("/offsets", offsets.see, "Offsets", "committed offsets of a group", "/groups", {**_NAME, **_MOVED}),
)
ACTIONS: Final = (
    Action("/produce", produce.act, "produce a record to a topic", produce.BODY),
    Action("/copy", copy.act, "copy a topic", copy.BODY),
    Action("/offsets-plan", offsets.propose, "preview a change of a group's offsets", offsets.PLAN_BODY),
    Action("/offsets", offsets.act, "change a group's offsets", offsets.COMMIT_BODY),
)
DOWNLOADS: Final = (
    Download("/message-data", messages.give, "key or value of a message", messages.DATA_QUERY),
)
