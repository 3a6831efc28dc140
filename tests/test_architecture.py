"""The shape of the package: no module imports itself through others.

Imports for type checkers count: who reads a file has to know what it names. The layers stand in setup.cfg,
for import-linter.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import grimp


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
