"""Transcripts of consumer groups: each command and what the state machine does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups.consumer.transcript import Player
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("consumer_groups"), ids=lambda path: path.stem)
def test_a_consumer_group_reacts_to_requests_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)
