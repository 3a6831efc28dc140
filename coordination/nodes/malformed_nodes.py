"""Malformed nodes of the metadata store: the exception, and logging.

Any client with write access to the store can create a malformed node. Such a node affects only the topic,
broker or request that it represents. It is logged with its path, once per version, and takes effect again
once it is repaired.
"""

import logging

log = logging.getLogger(__name__)

NO_VERSION = -1
"""Used in place of a node's version if the name of the node is invalid."""

MALFORMED_SETTINGS = "the topic keeps its previous settings, and none of its records are deleted"
MALFORMED_FEATURES = "no features are treated as finalized"


class MalformedNode(ValueError):
    """A node's content is invalid; the message begins with the path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class MalformedNodes:
    """Logs malformed nodes, once per version of a node. One instance per broker."""

    def __init__(self) -> None:
        self._reported: dict[str, int] = {}

    def report(self, error: MalformedNode, version: int, consequence: str) -> None:
        """Log a malformed node. `consequence` is a clause such as "the topic is left alone"."""
        if self._reported.get(error.path) != version:
            self._reported[error.path] = version
            log.error("Found an invalid node: %s; %s until the node is repaired", error, consequence)

    def report_notice(self, error: MalformedNode) -> None:
        """Log a malformed node that is read once and then removed."""
        log.error("Dropped an invalid notification: %s", error)
