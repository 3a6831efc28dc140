"""Counts of the error codes in responses, at all nesting levels, for metrics. No I/O.

The two most frequent APIs have their own code; all other APIs use the fields of their message classes.
"""

from __future__ import annotations

from typing import Any, Final

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.encoded_array import EncodedArray
from kafka_compat.protocol.schema import ArrayOf, fields_of

_FIELD: Final = "error_code"
_NO_CODES: Final = (False, ())


class Codes:
    """Counts of the error codes in the responses of one API."""

    __slots__ = ("_is_fetch", "_is_produce", "errors", "good")

    def __init__(self, key: ApiKey) -> None:
        self._is_produce = key is ApiKey.PRODUCE
        self._is_fetch = key is ApiKey.FETCH
        self.good = 0
        """Count of error code 0 (NONE)."""
        self.errors: dict[int, int] = {}

    def count(self, response: Any) -> None:
        """Count all error codes in a response."""
        if self._is_produce:
            good = 0
            for topic in response.responses:
                for produced in topic.partition_responses:
                    code = produced.error_code
                    if code == 0:
                        good += 1
                    else:
                        self.add(code)
            self.good += good
        elif self._is_fetch:
            good = 0
            code = response.error_code
            if code == 0:
                good = 1
            else:
                self.add(code)
            for topic in response.responses:
                for fetched in topic.partitions:
                    code = fetched.error_code
                    if code == 0:
                        good += 1
                    else:
                        self.add(code)
            self.good += good
        else:
            self._walk(response, _plan_of(type(response)))

    def add(self, code: int, count: int = 1) -> None:
        if code == 0:
            self.good += count
        else:
            self.errors[code] = self.errors.get(code, 0) + count

    def _walk(self, message: Any, plan: tuple[bool, tuple[Any, ...]]) -> None:
        has_code, within = plan
        if has_code:
            self.add(message.error_code)
        for name, inner in within:
            elements = getattr(message, name)
            if isinstance(elements, EncodedArray):
                for code, count in elements.codes.items():
                    self.add(code, count)
            for each in elements or ():
                self._walk(each, inner)


_plans: Final[dict[Any, tuple[bool, tuple[Any, ...]]]] = {}


def _plan_of(kind: Any) -> tuple[bool, tuple[Any, ...]]:
    """Return the location of the error codes in a message class: whether the class itself has an error code,
    and, for each list field whose elements contain error codes, its name and the locations in an element.
    """
    known = _plans.get(kind)
    if known is not None:
        return known
    has_code = False
    within = []
    for spec in fields_of(kind):
        if spec.name == _FIELD:
            has_code = True
        elif isinstance(spec.type, ArrayOf) and isinstance(spec.type.element, type):
            inner = _plan_of(spec.type.element)
            if inner != _NO_CODES:
                within.append((spec.name, inner))
    plan = _plans[kind] = has_code, tuple(within)
    return plan
