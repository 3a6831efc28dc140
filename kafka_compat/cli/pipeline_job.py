"""A job of `kafka-compat pipeline`, as its command line defines it."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

_DELETED = "the next records have been deleted from the topic"


class Job(NamedTuple):
    """A job: its help texts, the function that adds its arguments, and the function that runs it. `run`
    returns the report, or raises PipelineError.
    """

    help: str
    description: str
    epilog: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Any]


def exit_codes(done: str, lost: str | None = _DELETED) -> str:
    """Return a help epilog with the meaning of exit codes 0 and, for a job that reads topics, 3."""
    codes = f"exit codes: 0 {done}; 1 Spark or Kafka failed (run again to continue); 2 nothing was started"
    return codes if lost is None else f"{codes};\n3 {lost}"
