"""Pages of docs/design/parts: a handwritten introduction and a table of files generated from docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PARTS = PROJECT / "docs" / "design" / "parts"
MARK = "<!-- The rest of this page is made from the code: python -m tests.docs.write -->"
CELL_MAX = 200

PACKAGES = {
    "broker": (
        "storage",
        "coordination",
        *(
            f"kafka_compat/{name}"
            for name in (
                "broker",
                "network",
                "api",
                "handlers",
                "protocol",
                "cluster",
                "metadata",
                "replication",
                "coordinator_runtime",
                "groups",
                "share_coordinator",
                "share_partitions",
                "transactions",
                "upkeep",
                "security",
                "quorum",
                "quotas",
                "telemetry",
                "config",
            )
        ),
    ),
    "tools": (
        "kafka_compat/cli",
        "kafka_compat/migration",
        "kafka_compat/tools",
        "kafka_compat/client",
        "kafka_compat/status",
    ),
    "console": ("kafka_compat/page", "kafka_compat/search", "kafka_compat/decoding"),
    "monitoring": ("kafka_compat/metrics", "kafka_compat/otlp", "kafka_compat/http"),
    "pipelines": ("kafka_compat/pipelines",),
    "testing": ("kafka_compat/testing", "kafka_compat/control"),
}
"""The packages of each part, as paths from the root of the repository. Nested packages belong to the same
part."""


def page(part: str) -> str:
    """Return the page's text: its handwritten introduction, and the current table of files."""
    written = (PARTS / f"{part}.md").read_text().partition(MARK)[0]
    lines = [written.rstrip(), "", MARK, "", "## Files", ""]
    for package in PACKAGES[part]:
        root = PROJECT / package
        for folder in sorted({path.parent for path in root.rglob("__init__.py")}):
            lines += _table(folder)
    if part == "broker":
        lines += _table(PROJECT / "kafka_compat")
    return "\n".join(lines).rstrip() + "\n"


def _table(folder: Path) -> list[str]:
    files = [path for path in sorted(folder.glob("*.py")) if _is_listed(path)]
    head = [f"### `{folder.relative_to(PROJECT)}`", ""]
    sentence = first_sentence(folder / "__init__.py")
    if sentence:
        head += [sentence, ""]
    if not files:
        return head
    rows = [f"| `{path.name}` | {first_sentence(path)} |" for path in files]
    return [*head, "| File | Purpose |", "|---|---|", *rows, ""]


def _is_listed(path: Path) -> bool:
    """Return whether the file belongs in the table. Protocol messages do not, because they are named after
    Kafka's messages.
    """
    name = path.name
    return name != "__init__.py" and path.parent.name != "messages" and not name.endswith("_codec.py")


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = paragraph.partition(". ")[0].rstrip(".:")
    return f"{sentence}." if sentence else ""
