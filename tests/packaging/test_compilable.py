"""What keeps the sources such that mypyc compiles them to the same behaviour."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.servers import PROJECT

_HARMLESS = {"len", "max", "min"}
_ROOMS = ("kafka_compat", "storage", "coordination")


def _calls_in_bounds(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Slice):
            continue
        for bound in filter(None, (node.lower, node.upper, node.step)):
            for part in ast.walk(bound):
                harmless = isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
                if isinstance(part, ast.Call) and not (harmless and ast.unparse(part.func) in _HARMLESS):
                    yield f"line {bound.lineno}: {ast.unparse(bound)}"


@pytest.mark.parametrize("room", _ROOMS)
def test_no_bound_of_a_slice_makes_a_call(room: str) -> None:
    """Of a memoryview, mypyc 2.4.1 evaluates the bounds of a slice twice: `view[os.write(file, view):]` would
    write twice."""
    found = [
        f"{path.relative_to(PROJECT)}, {call}"
        for path in sorted((PROJECT / room).rglob("*.py"))
        if not path.is_relative_to(PROJECT / "kafka_compat/storage")
        and not path.is_relative_to(PROJECT / "kafka_compat/coordination")
        for call in _calls_in_bounds(path.read_text())
    ]
    assert not found, "assign what the call returns first: " + "; ".join(found)


def test_the_check_sees_what_it_is_about() -> None:
    assert list(_calls_in_bounds("view = view[os.write(file, view) :]\nhead = view[: len(prefix)]")) == [
        "line 1: os.write(file, view)"
    ]
