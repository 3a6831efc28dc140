"""Malformed nodes of the metadata store: exception and log messages.

Any client with write access to the store can create a malformed node. Such a node affects only the topic,
broker or request that it represents. It is logged with its path, once per version, and ignored until it is
repaired.
"""

import logging

log = logging.getLogger(__name__)

NO_VERSION = -1
"""The version to pass to `report` if the name of a node is invalid."""

MALFORMED_SETTINGS = "the topic keeps its previous settings, and none of its records are deleted"
MALFORMED_GROUP = "the group keeps its previous settings"
MALFORMED_FEATURE_LEVELS = "the feature levels stay unchanged"
MALFORMED_FEATURES = "no features are treated as finalized"


class MalformedNode(ValueError):
    """A node with invalid content. The message begins with the path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class MalformedNodes:
    """The malformed nodes that one broker has found. They are logged once per version of a node."""

    def __init__(self) -> None:
        self._reported: dict[str, int] = {}

    def report(self, error: MalformedNode, version: int, consequence: str) -> None:
        """Log a malformed node. `consequence` is a clause such as "the topic stays unchanged"."""
        if self._reported.get(error.path) != version:
            self._reported[error.path] = version
            log.error("Found an invalid node: %s; %s until the node is repaired", error, consequence)

    def report_notice(self, error: MalformedNode) -> None:
        """Log a malformed node that is read once and then removed."""
        log.error("Dropped an invalid notification: %s", error)
