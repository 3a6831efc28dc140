"""Nodes that hold something else than their path promises: the one error for it, and who tells of them.

Anybody who may write into the store can leave such a node behind. It costs what it stands for (that topic,
that broker, that request), is told of by its path, once for each version of it, and counts again once it is
mended.
"""

import logging

log = logging.getLogger(__name__)

NO_VERSION = -1
"""In place of a node's version, where its very name is wrong."""

MALFORMED_SETTINGS = "the topic keeps the settings that it had, and loses no records"
MALFORMED_FEATURES = "no features count as finalized"


class MalformedNode(ValueError):
    """A node does not hold what its path promises; the text begins with the path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class MalformedNodes:
    """Tells the log of malformed nodes, of each version of a node once. One for the life of a broker."""

    def __init__(self) -> None:
        self._reported: dict[str, int] = {}

    def report(self, error: MalformedNode, version: int, consequence: str) -> None:
        """`version` is that of the node; `consequence` says what this broker does now, as in "the topic is
        left alone"."""
        if self._reported.get(error.path) != version:
            self._reported[error.path] = version
            log.error("%s; %s until the node is mended", error, consequence)

    def report_notice(self, error: MalformedNode) -> None:
        """Of a node that is read once and then removed."""
        log.error("%s; the notice is dropped", error)
