"""The kinds of clusters in one process on which the same tests run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.embedded import EmbeddedCluster
from tests.quorum.cluster import QuorumCluster
from tests.support import campaign

KINDS: list[Callable[..., EmbeddedCluster]] = [EmbeddedCluster]
"""Clusters on an embedded metadata store and, in campaigns, on that of a quorum."""
if campaign.enabled():
    KINDS.append(QuorumCluster)

EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
