"""Kafka's own check of broker settings (ConfigOracle.java)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.programs import java_command

_SOURCE = Path(__file__).with_name("ConfigOracle.java")


def check(release: str, several: Sequence[Mapping[str, str]]) -> list[str | None]:
    """Return Kafka's error message for each of several configurations, or None where it accepts them."""
    texts = ("\n".join(f"{name}={value}" for name, value in settings.items()) for settings in several)
    found = subprocess.run(
        java_command("ConfigOracle", release, (str(_SOURCE),)),
        input="\n\n".join(texts),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    lines = [line for line in found.stdout.splitlines() if line.startswith(("accepted", "rejected "))]
    return [
        None if line == "accepted" else line.removeprefix("rejected ").removeprefix("requirement failed: ")
        for line in lines
    ]
