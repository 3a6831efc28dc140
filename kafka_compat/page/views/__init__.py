"""The views of the page, a module for each, and the table of all of them."""

from __future__ import annotations

from typing import Final

from kafka_compat.page.listing import QUERY
from kafka_compat.page.view import Action, View
from kafka_compat.page.views import overview, topic, topic_settings, topics

_NAME: Final = {"name": "string: of which"}

VIEWS: Final = (
    View(
        "/overview",
        overview.see,
        "overview.html",
        "Overview",
        "is the cluster well, and why not",
        "/overview",
    ),
    View("/topics", topics.see, "topics.html", "Topics", "all topics", "/topics", QUERY),
    View("/topic", topic.see, "topic.html", "Topic", "one topic", "/topics", {**_NAME, **QUERY}),
    View(
        "/topic-settings",
        topic_settings.see,
        "topic_settings.html",
        "Topic",
        "the settings of a topic, and where each comes from",
        "/topics",
        _NAME,
    ),
)
ACTIONS: Final[tuple[Action, ...]] = ()
