"""The Go client program (tests/clients/go)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import go_programs

_SOURCES = Path(__file__).resolve().parent / "go"


def go_driver() -> Path:
    """Return the path of the program. Skips the test if Go is not installed. Raises RuntimeError if
    compilation fails.
    """
    try:
        return go_programs.compiled(_SOURCES)
    except go_programs.GoMissing as error:
        pytest.skip(str(error))
