"""Code patterns that mypyc compiles to different behaviour, which the sources must avoid."""

from __future__ import annotations

import ast
import importlib
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kafka_compat.protocol.messages
import kafka_compat.protocol.native
from kafka_compat.protocol.codec import HOT_APIS, decode, encode
from kafka_compat.protocol.headers import has_flexible_response_header
from kafka_compat.protocol.native_module import native_module
from kafka_compat.protocol.schema import ArrayOf, Wire, fields_of, schema_of
from tests.packaging.compiled_modules import compiled_modules
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
def test_slice_bounds_never_contain_calls(room: str) -> None:
    """mypyc 2.4.1 evaluates slice bounds of a memoryview twice: `view[os.write(file, view):]` would write
    twice.
    """
    found = [
        f"{path.relative_to(PROJECT)}, {call}"
        for path in sorted((PROJECT / room).rglob("*.py"))
        if not path.is_relative_to(PROJECT / "kafka_compat/storage")
        and not path.is_relative_to(PROJECT / "kafka_compat/coordination")
        for call in _calls_in_bounds(path.read_text())
    ]
    assert not found, "assign the result of the call to a variable first: " + "; ".join(found)


def test_the_check_finds_calls_in_slice_bounds() -> None:
    assert list(_calls_in_bounds("view = view[os.write(file, view) :]\nhead = view[: len(prefix)]")) == [
        "line 1: os.write(file, view)"
    ]


def test_the_list_of_compiled_modules_is_sorted() -> None:
    found = [str(path.relative_to(PROJECT)) for path in compiled_modules()]
    assert found == sorted(set(found))
    assert all(path.is_file() for path in compiled_modules())


def test_compiled_modules_never_define_enumerations() -> None:
    """In compiled modules, mypyc 2.4.1 treats an optional enumeration member as true even if its value is 0,
    so the error code NONE would count as an error.
    """
    found = [
        f"{path.relative_to(PROJECT)}: {node.name}"
        for path in compiled_modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if re.search(r"(Enum|Flag)$", ast.unparse(base))
    ]
    assert not found, "move these to separate modules: " + ", ".join(found)


def _dying_at_once(source: str) -> Iterator[str]:
    """Yield functions that assign to `self._file` without returning the old value. Keeping it in a local is
    not enough, even with `del` at the end, because mypyc releases a local after its last use.
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


def test_assigning_an_attribute_never_closes_a_file() -> None:
    """Compiled assignments release the old value before storing the new one. Closing a file releases the GIL,
    and another thread could then read from the closed file.
    """
    broken = "class A:\n def close(self):\n  file = self._file\n  self._file = None\n  del file"
    assert list(_dying_at_once(broken)) == ["line 4: close"]
    found = [
        f"{path.relative_to(PROJECT)}, {place}"
        for path in compiled_modules()
        for place in _dying_at_once(path.read_text())
    ]
    assert not found, "return the old value: " + "; ".join(found)


def test_compiled_classes_have_neither_finalizers_nor_weak_references() -> None:
    """In compiled classes, finalizers run at different times, and weak references are not supported."""
    found = [
        str(path)
        for path in compiled_modules()
        if re.search("def __del__|import Weak|weakref", path.read_text())
    ]
    assert not found


def _caught_twice(source: str) -> Iterator[str]:
    """Yield names that a function uses for exceptions of different classes."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            seen: dict[str, str] = {}
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    caught = ast.unparse(handler.type)
                    if seen.setdefault(handler.name, caught) != caught:
                        yield f"line {handler.lineno}: {handler.name}"


def test_except_clauses_of_a_function_bind_different_names() -> None:
    """mypyc 2.4.1 gives the name the type of the first clause, and rejects the exceptions of the second."""
    twice = "def f():\n    try: g()\n    except A as e: h(e)\n    except B as e: h(e)"
    assert list(_caught_twice(twice)) == ["line 4: e"]
    found = [
        f"{path.relative_to(PROJECT)}, {place}"
        for path in compiled_modules()
        for place in _caught_twice(path.read_text())
    ]
    assert not found, "; ".join(found)


def _moving_bounds(source: str) -> Iterator[str]:
    """Yield loops over `range(name)` or `name` that assign to the name."""
    for loop in ast.walk(ast.parse(source)):
        if not isinstance(loop, ast.For):
            continue
        over = [loop.iter]
        if isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) in {"range", "enumerate", "zip"}:
            over = loop.iter.args
        names = {node.id for node in over if isinstance(node, ast.Name)}
        for part in (node for statement in loop.body for node in ast.walk(statement)):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id in names:
                yield f"line {loop.lineno}: {part.id}"


def test_loops_never_change_their_own_bound() -> None:
    """Compiled code evaluates `n` in `for _ in range(n)` again in each iteration."""
    assert list(_moving_bounds("for _ in range(n):\n    for _ in range(k + 1):\n        n, k = f()")) == [
        "line 1: n"
    ]
    sources = {str(path.relative_to(PROJECT)): path.read_text() for path in compiled_modules()}
    sources |= {api: native_module(api) for api in HOT_APIS}
    found = [f"{name}, {place}" for name, source in sources.items() for place in _moving_bounds(source)]
    assert not found, "use a separate name for the bound: " + "; ".join(found)


def _believed_none(source: str) -> Iterator[str]:
    """Yield reads of attributes that were None before a call that may have changed them."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _believed_in(function.body, {})


def _believed_in(body: list[ast.stmt], none: dict[str, bool]) -> Iterator[str]:
    """`none` holds the attributes that mypy considers to be None, and whether a call followed."""
    for statement in body:
        inner = [
            part
            for name in ("body", "orelse", "handlers", "finalbody")
            for part in getattr(statement, name, [])
        ]
        head = [part for part in ast.iter_child_nodes(statement) if part not in inner]
        for part in (node for expression in head for node in ast.walk(expression)):
            if (
                isinstance(part, ast.Attribute)
                and isinstance(part.ctx, ast.Load)
                and none.get(ast.unparse(part))
            ):
                yield f"line {part.lineno}: {ast.unparse(part)}"
        if any(
            isinstance(node, ast.Call | ast.Await | ast.Yield) for part in head for node in ast.walk(part)
        ):
            none.update(dict.fromkeys(none, True))
        if isinstance(statement, ast.Assign):
            for target in map(ast.unparse, statement.targets):
                none.pop(target, None)
                if "." in target and ast.unparse(statement.value) == "None":
                    none[target] = False
        for block in ("body", "orelse", "finalbody"):
            within = none if isinstance(statement, ast.Try | ast.With) else dict(none)
            test = ast.unparse(statement.test) if isinstance(statement, ast.If | ast.While) else ""
            if block == "body" and "." in test and test.endswith(" is None") and " and " not in test:
                within[test.removesuffix(" is None")] = False
            yield from _believed_in(getattr(statement, block, []), within)
        for clause in getattr(statement, "handlers", []):
            yield from _believed_in(clause.body, dict(none))


def test_attributes_are_never_assumed_to_be_none_after_a_call() -> None:
    """mypy considers an attribute to be None until the function assigns it. If another function assigned it,
    the compiled code raises TypeError.
    """
    broken = "def f(self):\n self.x = None\n try: self.g()\n finally:\n  if self.x is None: self.h()"
    assert list(_believed_none(broken)) == ["line 5: self.x"]
    assert not list(
        _believed_none("def f(self):\n if self.x:\n  self.x = None\n  self.g()\n if self.x: self.h()")
    )
    found = [
        f"{path.relative_to(PROJECT)}, {place}"
        for path in compiled_modules()
        for place in _believed_none(path.read_text())
    ]
    assert not found, "read the attribute in a separate function: " + "; ".join(found)


def _classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))


def test_interpreted_classes_never_inherit_from_compiled_classes() -> None:
    """The class definition would fail: "interpreted classes cannot inherit from compiled"."""
    compiled = compiled_modules()
    made_by = {
        (str(path.relative_to(PROJECT).with_suffix("")).replace("/", "."), node.name)
        for path in compiled
        for node in _classes(path)
        if not any(re.search(r"(Protocol|Error|NamedTuple)\b", ast.unparse(base)) for base in node.bases)
    }
    found = []
    for path in (path for room in _ROOMS for path in sorted((PROJECT / room).rglob("*.py"))):
        if path in compiled or path.is_relative_to(PROJECT / "kafka_compat/storage"):
            continue
        tree = ast.parse(path.read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        names = {
            item.asname or item.name: (f"{node.module}.{item.name}", (node.module, item.name))
            for node in imports
            for item in node.names
        }
        for node in _classes(path):
            for base in map(ast.unparse, node.bases):
                first, _, rest = base.partition(".")
                module, alone = names.get(first, ("", ("", "")))
                if (module, rest) in made_by or (not rest and alone in made_by):
                    found.append(f"{path.relative_to(PROJECT)}: {node.name}({base})")
    assert not found, "compile both, or neither: " + "; ".join(found)


def _fields_of_later_classes(source: str) -> Iterator[str]:
    """Yield fields of named tuples whose class the module defines further down."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    for number, made in enumerate(classes):
        if "NamedTuple" in map(ast.unparse, made.bases):
            later = {node.name for node in classes[number:]}
            for field in (node for node in made.body if isinstance(node, ast.AnnAssign)):
                names = re.findall(r"\w+", ast.unparse(field.annotation))
                if later & set(names):
                    yield f"line {field.lineno}: {ast.unparse(field)}"


def test_named_tuple_fields_never_refer_to_classes_defined_later() -> None:
    """mypyc 2.4.1 reads the field's class when it creates the tuple, so the import crashes the process."""
    found = [
        f"{path.relative_to(PROJECT)}, {field}"
        for path in compiled_modules()
        for field in _fields_of_later_classes(path.read_text())
    ]
    assert not found, "define that class first, or say Any: " + "; ".join(found)
    wrong = "class Served(NamedTuple):\n    context: Context[Any]\nclass Context: ...\n"
    assert list(_fields_of_later_classes(wrong)) == ["line 2: context: Context[Any]"]


def _filled(wire_type: Any, elements: int) -> Any:
    """Return a value of the type whose arrays have `elements` elements."""
    if isinstance(wire_type, ArrayOf):
        return [_filled(wire_type.element, elements) for _ in range(elements)]
    if not isinstance(wire_type, Wire):
        return wire_type(**{spec.name: _filled(spec.type, elements) for spec in fields_of(wire_type)})
    values = {"string": "x" * 200, "bytes": b"b" * elements, "records": b"r" * 70, "uuid": UUID(int=7)}
    return values.get(wire_type.name, wire_type.code == "?" or 7)


def _plain(value: Any) -> Any:
    if hasattr(type(value), "__fields__"):
        return {spec.name: _plain(getattr(value, spec.name)) for spec in fields_of(type(value))}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.interpreted("its messages are native already")
@pytest.mark.parametrize("api", HOT_APIS)
def test_native_messages_and_codecs_agree_with_those_in_python(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source that is compiled runs as Python here. It encodes and decodes like the codec in Python."""
    module = importlib.import_module(f"kafka_compat.protocol.messages.{api}")
    monkeypatch.setitem(sys.modules, f"{module.__name__}_schema", module)
    monkeypatch.setattr(kafka_compat.protocol.messages, f"{api}_schema", module, raising=False)
    for integer in ("i32", "u8"):
        monkeypatch.setattr(kafka_compat.protocol.native, integer, int, raising=False)
    made: dict[str, Any] = {"i32": int, "i64": int}
    exec(native_module(api), made)
    assert made["DECODERS"] and (made["ENCODERS"] or made["FRAMERS"])
    for (native, version), function in made["FRAMERS"].items():
        cls = getattr(module, native.__name__)
        has_tags = has_flexible_response_header(schema_of(cls).api_key or 0, version)
        for elements in (0, 1, 3):
            body = encode(_filled(cls, elements) if elements else cls(), version)
            start = struct.pack(">ii", 4 + has_tags + len(body), 77) + bytes(has_tags)
            message = _filled(native, elements) if elements else native()
            frame = b"".join(function(message, 77, 10**7))
            assert frame == start + body, f"{native.__name__} {version}"
    for (native, version), function in made["ENCODERS"].items():
        cls = getattr(module, native.__name__)
        for elements in (0, 1, 3):
            whole = encode(_filled(cls, elements) if elements else cls(), version)
            parts: list[bytes] = []
            function(_filled(native, elements) if elements else native(), parts.append, parts.append, 10**7)
            assert b"".join(parts) == whole, f"{native.__name__} {version}"
    for (native, version), function in made["DECODERS"].items():
        cls = getattr(module, native.__name__)
        for elements in (0, 1, 3):
            whole = encode(_filled(cls, elements) if elements else cls(), version)
            read, end = function(whole, 0, 10**7)
            assert end == len(whole), f"{native.__name__} {version}"
            assert _plain(read) == _plain(decode(cls, version, whole)), f"{native.__name__} {version}"
