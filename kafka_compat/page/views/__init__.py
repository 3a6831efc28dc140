"""The views of the page, a module for each, and the table of all of them."""

from __future__ import annotations

from typing import Final

from kafka_compat.page.listing import QUERY
from kafka_compat.page.view import Action, Download, View
from kafka_compat.page.views import (
    brokers,
    clients,
    disks,
    group,
    groups,
    logs,
    of_messages,
    overview,
    refused,
    topic,
    topic_settings,
    topics,
    transactions,
)

_NAME: Final = {"name": "string: of which"}
_LEVEL: Final = {"level": "string: INFO, WARN or ERROR, for lines that are at least as grave"}

VIEWS: Final = (
    View("/overview", overview.see, "overview.html", "Overview", "is it well, and why not", "/overview"),
    View("/topics", topics.see, "topics.html", "Topics", "all topics", "/topics", QUERY),
    View("/topic", topic.see, "topic.html", "Topic", "one topic", "/topics", {**_NAME, **QUERY}),
    View(
        "/topic-settings",
        topic_settings.see,
        "topic_settings.html",
        "Settings of a topic",
        "the settings of a topic, and where each comes from",
        "/topics",
        _NAME,
    ),
    View(
        "/groups",
        groups.see,
        "groups.html",
        "Groups",
        "all groups",
        "/groups",
        {**QUERY, "topic": "string: a topic that they read"},
    ),
    View("/group", group.see, "group.html", "Group", "one group", "/groups", {**_NAME, **QUERY}),
    View(
        "/transactions",
        transactions.see,
        "transactions.html",
        "Transactions",
        "all transactional ids",
        "/transactions",
        QUERY,
    ),
    View("/brokers", brokers.see, "brokers.html", "Brokers", "all brokers", "/brokers"),
    View(
        "/broker",
        brokers.see_one,
        "broker.html",
        "Broker",
        "one broker with its settings",
        "/brokers",
        {"id": "integer: its id"},
    ),
    View("/disks", disks.see, "disks.html", "Disks", "log directories and their space", "/disks"),
    View("/clients", clients.see, "clients.html", "Clients", "who is connected", "/clients", QUERY),
    View("/refused", refused.see, "refused.html", "Refused", "who was refused, and why", "/refused", QUERY),
    View("/logs", logs.see, "logs.html", "Logs", "the last lines of the log", "/logs", {**QUERY, **_LEVEL}),
    *of_messages.VIEWS,
)
ACTIONS: Final[tuple[Action, ...]] = of_messages.ACTIONS
DOWNLOADS: Final[tuple[Download, ...]] = of_messages.DOWNLOADS
