"""Transcripts of the share coordinator: operations on a share-partition, their results and records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.share_coordinator.transcript import Player
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("share_coordinator"), ids=lambda path: path.stem)
def test_a_share_partition_is_stored_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)
