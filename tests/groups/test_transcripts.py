"""What a group does, told by the transcripts in tests/transcripts/groups.

After a change that is meant, KAFKA_COMPAT_REWRITE_TRANSCRIPTS=1 writes down what happens now, for `git diff`
to show.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.groups.transcript import Player
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("groups"), ids=lambda path: path.stem)
def test_a_group_behaves_as_in_its_transcript(path: Path) -> None:
    check_transcript(path, Player().play)
