"""What is wrong with a regular expression of a subscription of KIP-848, in the words of Kafka's command.

The package google-re2 judges; Kafka uses RE2/J, which has the same syntax and other words.
"""

from __future__ import annotations

import re
from typing import Final

from kafka_compat.tools.failure import Failure

_WORDS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""RE2's words and RE2/J's, where they differ."""

_CAPTURE: Final = re.compile(r"\(\?P?<(\w+)>")


def what_is_wrong(expression: str) -> str | None:
    """None for a valid expression. Raises Failure where google-re2 is not installed."""
    try:
        import re2
    except ImportError:
        text = "--validate-regex needs the package google-re2: install kafka-compat[regex]"
        raise Failure("java.lang.UnsupportedOperationException", text) from None

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(expression, options=options)
    except re2.error as error:
        reason: str = error.args[0].decode(errors="replace").partition(": ")[0]
        return _WORDS.get(reason, reason)
    names = _CAPTURE.findall(expression)
    return None if len(set(names)) == len(names) else "duplicate capture group name"
