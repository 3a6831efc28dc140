"""The modules that scripts/compile compiles."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.servers import PROJECT


def compiled_modules() -> list[Path]:
    """Return the modules in setup.py's list."""
    tree = ast.parse((PROJECT / "setup.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED":
            return [PROJECT / path for path in ast.literal_eval(node.value)]
    raise AssertionError("setup.py has no COMPILED")
