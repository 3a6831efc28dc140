"""Comparison of this broker with another one in pairs of runs, in the order A B, B A, A B, …"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tests.bench import sides
from tests.bench.progress import Progress
from tests.bench.report import Pairs, as_json, table
from tests.bench.sides import Side
from tests.support.servers import PROJECT

AnySide = TypeVar("AnySide", bound=Side)
Figures = dict[str, dict[str, float]]
"""Maps the measurements of one run to their figures."""


def new_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of `python -m tests.bench.NAME`, with the options that all comparisons have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.bench.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--compiled", action="store_true", help="with the compiled form (scripts/compile)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout in Kafka's place")
    parser.add_argument("--directory", type=Path, help="parent of the data directories (default: /tmp)")
    parser.add_argument("--json", action="store_true")
    return parser


def compare(
    arguments: argparse.Namespace,
    run: Callable[[Side, Progress], Figures],
    *,
    version: str,
    steps: int,
    columns: Mapping[str, str],
    title: str,
) -> None:
    """Compare this broker with this version of Apache Kafka, or with the checkout in `arguments`, and print
    the ratios. `run` starts a side and measures it, in `steps` steps.
    """

    def ours(folder: Path) -> Side:
        return sides.ours(folder, compiled=arguments.compiled)

    def other(folder: Path) -> Side:
        if arguments.before is None:
            return sides.genuine(folder, "kraft", version=version)
        return sides.before(folder, arguments.before.resolve(), compiled=arguments.compiled)

    compare_sides(arguments, (ours, other), run, steps=steps, columns=columns, title=title)


def compare_sides(
    arguments: argparse.Namespace,
    makers: tuple[Callable[[Path], AnySide], Callable[[Path], AnySide]],
    run: Callable[[AnySide, Progress], Figures],
    *,
    steps: int,
    columns: Mapping[str, str],
    title: str,
) -> None:
    """Compare two sides, which `makers` make in a directory: this broker, and the other one."""
    if not arguments.compiled:
        for checkout in (PROJECT, arguments.before):
            if checkout is not None:
                sides.compile_sources(checkout)
    results: dict[str, Pairs] = {}
    progress = Progress(2 * arguments.pairs * steps)
    with tempfile.TemporaryDirectory(prefix="kafka-compat-bench-", dir=arguments.directory) as parent:
        for pair in range(arguments.pairs):
            found: dict[int, Figures] = {}
            for position in (0, 1) if pair % 2 == 0 else (1, 0):
                folder = Path(parent) / f"{pair}-{position}"
                found[position] = run(makers[position](folder), progress)
                sides.remove(folder)
            for name, figures in found[0].items():
                results.setdefault(name, Pairs()).add(figures, found[1][name])
    progress.close()
    print(json.dumps(as_json(results), indent=1) if arguments.json else table(results, columns, title))
    sys.stdout.flush()
