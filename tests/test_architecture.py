"""The shape of the package: no module imports itself through others, and nothing is too long to be read.

Imports for type checkers count: who reads a file has to know what it names. The layers stand in setup.cfg,
for import-linter.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import grimp

import kafka_compat
from kafka_compat.protocol.codec import COMPILED_CODECS

PACKAGE = Path(next(iter(kafka_compat.__path__)))
LINES_OF_A_FILE_MAX = 450
LINES_OF_A_CLASS_MAX = 400
GENERATED = {str(Path(*name.split(".")[1:]).with_suffix(".py")) for name in COMPILED_CODECS.values()}
"""Sources that lie beside their extensions in the compiled form, and that nobody writes."""


def sources() -> Iterator[tuple[str, str]]:
    """Each file of the package that somebody wrote, by its path in it, and its text."""
    # storage and coordination lie beside the package, and are linked into it.
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        for name in names:
            path = Path(folder, name)
            inside = str(path.relative_to(PACKAGE))
            if name.endswith(".py") and inside not in GENERATED:
                yield inside, path.read_text()


def test_no_module_imports_itself_through_others() -> None:
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


def test_files_can_be_read_at_one_go() -> None:
    found = {path for path, text in sources() if len(text.splitlines()) > LINES_OF_A_FILE_MAX}
    assert found == set()


def test_classes_can_be_understood_at_one_go() -> None:
    found = {
        f"{path}: {node.name}"
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LINES_OF_A_CLASS_MAX
    }
    assert found == set()


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert _circles(imports) == [{"b", "c"}]


def _circles(imports: Mapping[str, Set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module (Tarjan, without recursion)."""
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
