"""The error that ends a command for Spark, on stderr."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.pipelines.errors import PipelineError


def print_error(error: "PipelineError", command: str = "", more: str = "") -> int:
    """Print the error, preceded by the command's name, and its hint, followed by `more`. Return the command's
    exit code.
    """
    print(f"{command}: {error}" if command else error, file=sys.stderr)
    hint = (error.hint + more).strip()
    if hint:
        print(hint, file=sys.stderr)
    return error.exit_code
