"""What keeps the sources such that mypyc compiles them to the same behaviour."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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


def compiled_modules() -> list[Path]:
    """The modules of the list in setup.py."""
    tree = ast.parse((PROJECT / "setup.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED":
            return [PROJECT / path for path in ast.literal_eval(node.value)]
    raise AssertionError("setup.py has no COMPILED")


def test_the_list_of_compiled_modules_is_in_order() -> None:
    found = [str(path.relative_to(PROJECT)) for path in compiled_modules()]
    assert found == sorted(set(found), key=lambda path: (path.startswith("storage"), path.count("/"), path))
    assert all(path.is_file() for path in compiled_modules())


def test_no_enumeration_iscompiled_modules() -> None:
    """Of an enumeration in a compiled module, mypyc 2.4.1 takes an optional member for true also where its
    number is 0: an error code NONE would count as an error."""
    found = [
        f"{path.relative_to(PROJECT)}: {node.name}"
        for path in compiled_modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if re.search(r"(Enum|Flag)$", ast.unparse(base))
    ]
    assert not found, "put it into a module of its own: " + ", ".join(found)


def _dying_at_once(source: str) -> Iterator[str]:
    """Functions that assign to `self._file` and do not return the old value. To keep it in a local is not
    enough, nor is `del` at the end: mypyc lets go of a local after its last use.
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
            continue
        lines = [ast.unparse(node) for node in ast.walk(function)]
        returned = "before = self._file" in lines and "return before" in lines
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and not returned:
                targets = map(ast.unparse, node.targets)
                if "self._file" in targets:
                    yield f"line {node.lineno}: {function.name}"


def test_a_file_outlives_its_attribute() -> None:
    """Compiled, an assignment ends the old value before the new one is there; a file that ends closes its
    descriptor, lets other threads go on meanwhile, and they would read from it."""
    broken = "class A:\n def close(self):\n  file = self._file\n  self._file = None\n  del file"
    assert list(_dying_at_once(broken)) == ["line 4: close"]
    found = [
        f"{path.relative_to(PROJECT)}, {place}"
        for path in compiled_modules()
        for place in _dying_at_once(path.read_text())
    ]
    assert not found, "return it: " + "; ".join(found)


def test_nothing_that_is_compiled_has_a_finalizer() -> None:
    """Where it would run is another matter there."""
    found = [str(path) for path in compiled_modules() if "def __del__" in path.read_text()]
    assert not found


def _caught_twice(source: str) -> Iterator[str]:
    """Names that one function gives to exceptions of different classes."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            seen: dict[str, str] = {}
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    caught = ast.unparse(handler.type)
                    if seen.setdefault(handler.name, caught) != caught:
                        yield f"line {handler.lineno}: {handler.name}"


def test_each_exception_has_a_name_of_its_own() -> None:
    """mypyc 2.4.1 gives a name the type of the first clause, and refuses what the second one catches."""
    twice = "def f():\n    try: g()\n    except A as e: h(e)\n    except B as e: h(e)"
    assert list(_caught_twice(twice)) == ["line 4: e"]
    found = [
        f"{path.relative_to(PROJECT)}, {place}"
        for path in compiled_modules()
        for place in _caught_twice(path.read_text())
    ]
    assert not found, "; ".join(found)
