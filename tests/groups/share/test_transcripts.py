"""Transcripts of share groups: each command and what the state machine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups.share.transcript import Player
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("share_groups"), ids=lambda path: path.stem)
def test_a_share_group_reacts_to_requests_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)
