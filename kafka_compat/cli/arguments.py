"""What arguments of several commands may be."""

from __future__ import annotations

import argparse


def port(text: str) -> int:
    """A number from 0 to 65535."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; expected a number from 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """Of brokers: 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of brokers; expected 1 or more")
    return int(text)
