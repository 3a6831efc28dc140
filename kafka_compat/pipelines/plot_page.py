"""A picture and tables in one HTML file that can be mailed around."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .whole_file import write_whole

Table = tuple[str, Sequence[Sequence[str]]]
"""A heading, and lines of cells; the first line is the head."""


def save(
    path: Path,
    figure: Any,
    title: str,
    alt: str,
    before: Sequence[Table],
    after: Sequence[Table],
) -> tuple[Path, Path]:
    """Write a matplotlib figure as `path`.png, and `path`.html with it; returns both names.

    A reader sees each file whole, or as it was before.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    text = page(title, png.getvalue(), alt, before, after)
    files = (path.with_suffix(".png"), path.with_suffix(".html"))
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, content in zip(files, (png.getvalue(), text.encode()), strict=True):
        write_whole(file, content)
    return files


def page(title: str, png: bytes, alt: str, before: Sequence[Table], after: Sequence[Table]) -> str:
    """The page: tables, the picture, tables. A table of one line becomes a paragraph of its heading alone."""
    picture = base64.b64encode(png).decode()
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>
<style>body{{font:15px sans-serif;margin:2em;max-width:75em}}img{{max-width:100%}}
td{{padding:.2em 1em;border-bottom:1px solid #ddd}}</style>
<h1>{html.escape(title)}</h1>
{"".join(map(_table, before))}
<img alt="{html.escape(alt)}" src="data:image/png;base64,{picture}">
{"".join(map(_table, after))}
</html>
"""


def _table(table: Table) -> str:
    heading, lines = table
    text = f"<p>{html.escape(heading)}</p>\n" if heading else ""
    if len(lines) < 2:
        return text
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n" for line in lines
    )
    return f"{text}<table>{rows}</table>\n"
