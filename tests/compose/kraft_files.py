"""All compose files of clusters in KRaft mode."""

from typing import Final

from tests.compose import kraft_apache, kraft_bitnami, kraft_confluent, kraft_testcontainers
from tests.compose.kraft_file import ComposeFile

FILES: Final[tuple[ComposeFile, ...]] = (*kraft_apache.FILES, *kraft_confluent.FILES, *kraft_bitnami.FILES)
"""Published compose files."""

CLUSTERS: Final[tuple[ComposeFile, ...]] = (*FILES, *kraft_testcontainers.FILES)
"""Also what Testcontainers starts."""
