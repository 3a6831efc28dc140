"""The structure of the product and of its tests.

No module of the product imports itself through others; imports for type checkers count. The layers are in
setup.cfg, for import-linter. Tests mirror the packages, and share code only through support modules.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import grimp

PROJECT = Path(__file__).resolve().parents[1]
TESTS = PROJECT / "tests"
WORDS_MIN = 3
"""Shorter names do not state the tested behaviour."""


def test_modules_never_import_each_other_in_a_cycle() -> None:
    graph = grimp.build_graph(
        "kafka_compat",
        include_external_packages=False,
        exclude_type_checking_imports=False,
        cache_dir=None,
    )
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    found = {
        frozenset(module.removeprefix("kafka_compat.") for module in circle) for circle in _circles(imports)
    }
    assert found == set()


def test_import_cycles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert _circles(imports) == [{"b", "c"}]


def test_modules_never_import_test_modules() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {imported}"
        for path in sorted(TESTS.rglob("*.py"))
        for imported in _imported_test_modules(path.read_text())
    ]
    assert not found, "move what they share to a support module: " + "; ".join(found)


def test_imports_of_test_modules_are_found_in_every_form() -> None:
    source = """
from tests.cli.test_serve import refusal
from tests.conftest import COMPILED
from tests.cli import test_serve, conftest
def function():
    import tests.cli.test_serve as serve
from tests.support import campaign
from tests.testing import left_over
"""
    assert list(_imported_test_modules(source)) == [
        "tests.cli.test_serve",
        "tests.conftest",
        "tests.cli.test_serve",
        "tests.cli.conftest",
        "tests.cli.test_serve",
    ]


def _imported_test_modules(source: str) -> Iterator[str]:
    for node in sorted(
        (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)),
        key=lambda node: node.lineno,
    ):
        if isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        elif _is_test_module(node.module or ""):
            names = [node.module or ""]
        else:
            names = [f"{node.module}.{item.name}" for item in node.names]
        yield from filter(_is_test_module, names)


def _is_test_module(name: str) -> bool:
    return name.startswith("tests.") and re.search(r"\.(test_\w+|conftest)$", name) is not None


def test_every_sleep_has_a_comment_with_the_reason() -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in _sleeps_without_a_reason(path.read_text())
    ]
    assert not found, "wait for an event, or say beside it why time must pass: " + ", ".join(found)


def test_sleeps_without_a_reason_are_found() -> None:
    source = """
import asyncio, time
time.sleep(1)
time.sleep(2)  # the session expires
# The session expires.
time.sleep(3)
# The session expires.

time.sleep(4)
async def function():
    await asyncio.sleep(0)  # noqa: ASYNC000
    text = "sleep(5)"
"""
    assert list(_sleeps_without_a_reason(source)) == [3, 9, 11]


def _sleeps_without_a_reason(source: str) -> Iterator[int]:
    """Yield the lines that call a function `sleep` without a comment in the same line or the line above."""
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")
    }
    above = {number + 1 for number in comments if source.splitlines()[number - 1].lstrip().startswith("#")}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep":
            lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if not lines & comments and node.lineno not in above:
                yield node.lineno


def test_test_names_state_the_tested_behavior() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {node.name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name.split("_")) < WORDS_MIN + 1
    ]
    assert not found, "state the tested behaviour in the name: " + ", ".join(found)


def test_every_package_has_a_test_directory() -> None:
    tested = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    missing = [
        package for package in _packages() if not any(f"{folder}/".startswith(package) for folder in tested)
    ]
    assert not missing, "add tests in " + ", ".join(f"tests/{package}" for package in missing)


def _packages() -> Iterator[str]:
    """Yield the packages as directories below tests/: kafka_compat/page is page/, storage/log is
    storage/log/.
    """
    for room in ("kafka_compat", "storage", "coordination"):
        for path in sorted((PROJECT / room).rglob("__init__.py")):
            package = path.parent.relative_to(PROJECT).as_posix().removeprefix("kafka_compat").strip("/")
            if package:
                yield f"{package}/"


def _circles(imports: Mapping[str, Set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one module (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    circles: list[set[str]] = []
    for root in sorted(imports):
        if root in index:
            continue
        work = [(root, iter(sorted(imports[root])))]
        index[root] = low[root] = len(index)
        path.append(root)
        while work:
            module, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    work.append((other, iter(sorted(imports[other]))))
                    break
                if other in path:
                    low[module] = min(low[module], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    circle = set(path[path.index(module) :])
                    del path[path.index(module) :]
                    if len(circle) > 1:
                        circles.append(circle)
    return circles
