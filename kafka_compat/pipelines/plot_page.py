"""Write a plot and tables as one self-contained HTML file, in light and dark mode, for mail and print."""

import base64
import html
import io
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kafka_compat.pipelines.progress import utc
from kafka_compat.pipelines.whole_file import write_whole

DPI = 160
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Theme(NamedTuple):
    """Colors of a plot. `first` to `third` are the data colors, distinguishable with color blindness (after
    Okabe and Ito). Each series also has its own hatch, marker or dash pattern, for black-and-white prints.
    """

    paper: str
    ink: str
    faint: str
    grid: str
    first: str
    second: str
    third: str


LIGHT = Theme("#ffffff", "#1b1f24", "#57606a", "#d8dee4", "#0072b2", "#d55e00", "#007a5a")
DARK = Theme("#14171c", "#e6edf3", "#9da7b1", "#2f353d", "#56b4e9", "#ff9350", "#2fc79a")


@contextmanager
def styled(theme: Theme) -> Iterator[None]:
    """Apply the theme to figures drawn in the `with` block. Labels are plain text, without mathtext."""
    import warnings

    import matplotlib

    settings: Any = {
        "text.parse_math": False,
        "text.color": theme.ink,
        "axes.edgecolor": theme.faint,
        "axes.facecolor": theme.paper,
        "axes.labelcolor": theme.ink,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": 11,
        "axes.titlepad": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "figure.facecolor": theme.paper,
        "figure.constrained_layout.h_pad": 0.08,
        "figure.constrained_layout.w_pad": 0.08,
        "font.size": 9,
        "grid.color": theme.grid,
        "hatch.color": theme.paper,
        "hatch.linewidth": 1.4,
        "legend.frameon": False,
        "xtick.color": theme.faint,
        "xtick.labelcolor": theme.ink,
        "ytick.color": theme.faint,
        "ytick.labelcolor": theme.ink,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Suppress the warning about characters that the font lacks. They are drawn as boxes, but the table
        # shows them.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


def unit_of(values: Sequence[int]) -> tuple[str, int]:
    """Return the best unit for the largest of these sizes, and the unit's size in bytes."""
    power = 0
    while max(values, default=0) >= 1024 ** (power + 1) and power < len(_UNITS) - 1:
        power += 1
    return _UNITS[power], 1024**power


def size_text(size_bytes: float) -> str:
    """Format a size with up to three digits and a unit, as in 512 B, 1.50 KiB or 48.2 MiB."""
    unit, factor = unit_of([int(size_bytes)])
    value = size_bytes / factor
    digits = 0 if unit == "B" or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def shortened(text: str, length: int = 28) -> str:
    """Shorten a name to at most `length` characters by replacing its middle with an ellipsis."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


def rows_of(axes: Any, names: Sequence[str]) -> None:
    """Set up the y axis with one row for each name, from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def thousands(axis: Any) -> None:
    """Set integer ticks with commas as thousands separators."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def sizes(axis: Any) -> None:
    """Set ticks at powers of two on a logarithmic axis of sizes in bytes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=2, numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: size_text(value).replace(".00", "").replace(".0", ""))
    )


def titled(axes: Any, title: str, *, with_room: bool = False) -> None:
    """Add a title, and a legend if there are labels. `with_room` always reserves space for a legend."""
    labelled = axes.get_legend_handles_labels()[0]
    axes.set_title(title, pad=26 if labelled or with_room else 8)
    if labelled:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.1, "borderpad": 0.3}
        axes.legend(ncols=4, fontsize=8.5, columnspacing=1.6, handletextpad=0.5, **place)


_CAPTION_WIDTH = 150


class Origin(NamedTuple):
    """The origin of a plot: the command ("" if there is none), a description of the cluster, and the time."""

    command: str
    cluster: str
    at_ms: int

    @classmethod
    def now(cls, command: str, cluster: str) -> "Origin":
        return cls(command, cluster, int(time.time() * 1000))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts about the origin, as (name, value) pairs in display order."""
        made = utc(self.at_ms).replace("T", " ").replace("Z", " UTC")
        known = [("Cluster", self.cluster), ("Made", made), ("Command", self.command)]
        return [fact for fact in known if fact[1]]

    @property
    def caption(self) -> str:
        """Caption of the plot, with one line per fact."""
        lines = [f"{what}: {text}" for what, text in self.facts]
        how: Any = {"width": _CAPTION_WIDTH, "subsequent_indent": "    ", "break_on_hyphens": False}
        return "\n".join(textwrap.fill(line, **how) for line in lines)


class Column(NamedTuple):
    """A column's title, and whether the column contains numbers, which are right-aligned."""

    head: str
    is_number: bool = False


def columns(*heads: str) -> list[Column]:
    """Create columns with these titles. The prefix # marks a column of numbers."""
    return [Column(head.removeprefix("#"), head.startswith("#")) for head in heads]


class Table(NamedTuple):
    """A table. Each row has a cell for each column, and the first cell is the row's header. If there are no
    rows, `note` replaces the table; otherwise, it is the table's caption.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Page(NamedTuple):
    """Contents of a page, from top to bottom: `summary` in words, the tables `before`, the plot with `alt` as
    its text alternative, and the tables `after`.
    """

    title: str
    origin: Origin
    summary: str
    before: Sequence[Table]
    alt: str
    after: Sequence[Table]


def save(path: Path, page: Page, draw: Callable[[Theme], Any]) -> tuple[Path, Path]:
    """Write the figure from `draw` to `path`.png, and the HTML page with the figure to `path`.html.

    Each file is replaced atomically. Returns both paths.
    """
    light, dark = (_png(page, draw, theme) for theme in (LIGHT, DARK))
    files = (path.with_suffix(".png"), path.with_suffix(".html"))
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, content in zip(files, (light, written(page, light, dark).encode()), strict=True):
        write_whole(file, content)
    return files


def _png(page: Page, draw: Callable[[Theme], Any], theme: Theme) -> bytes:
    png = io.BytesIO()
    with styled(theme):
        figure = draw(theme)
        figure.supxlabel(f"\n{page.origin.caption}", x=0.005, ha="left", fontsize=7.5, color=theme.faint)
        metadata = {"Title": page.title, "Description": page.alt, "Source": page.origin.command}
        figure.savefig(png, format="png", dpi=DPI, metadata=metadata)
    return png.getvalue()


_STYLE = """
:root { color-scheme: light dark;
  --ink: #1b1f24; --faint: #57606a; --line: #d0d7de; --paper: #ffffff; --band: #f6f8fa }
@media screen and (prefers-color-scheme: dark) { :root {
  --ink: #e6edf3; --faint: #9da7b1; --line: #3d444d; --paper: #14171c; --band: #1d2127 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; padding: 0 1rem; max-width: 80rem }
h1 { margin-bottom: 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
dl { color: var(--faint); font-size: .875rem; display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1rem }
dd { margin: 0; overflow-wrap: anywhere } dd.command { font-family: ui-monospace, monospace }
figure { margin: 2rem 0 } img { max-width: 100%; height: auto; display: block }
.wide { overflow-x: auto } .wide:focus-visible { outline: 2px solid var(--faint) }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--faint); padding-bottom: .25rem }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap }
thead th { border-bottom: 2px solid var(--faint); vertical-align: bottom }
tbody th { font-weight: normal } tbody tr:nth-child(even) { background: var(--band) }
.number { text-align: right }
@media (max-width: 50rem) { img { max-width: none; width: 50rem } }
@media print { body { margin: 0; max-width: none; font-size: 11px } .wide { overflow: visible } }
"""


def written(page: Page, light: bytes, dark: bytes) -> str:
    """Return the page as HTML, with the plot in a light and a dark version (as PNG)."""
    title, dark_source = html.escape(page.title), _data(dark)
    width, height = _size_in_pixels(light)
    facts = "".join(
        f'<dt>{what}</dt><dd class="{what.lower()}">{html.escape(text)}</dd>'
        for what, text in page.origin.facts
    )
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style></head>
<body><main>
<h1>{title}</h1>
<dl>{facts}</dl>
<p>{html.escape(page.summary)}</p>
{"".join(map(_table, page.before))}
<figure class="wide" role="region" aria-label="Picture" tabindex="0"><picture>
<source media="screen and (prefers-color-scheme: dark)" srcset="{dark_source}">
<img alt="{html.escape(page.alt)}" width="{width}" height="{height}" src="{_data(light)}">
</picture></figure>
{"".join(map(_table, page.after))}
</main></body>
</html>
"""


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _size_in_pixels(png: bytes) -> tuple[int, int]:
    """Return the display size of a PNG image, from its first chunk. The image has a higher resolution."""
    return tuple(round(int.from_bytes(png[i : i + 4]) * 96 / DPI) for i in (16, 20))  # type: ignore[return-value]


def _table(table: Table) -> str:
    title = html.escape(table.title)
    note = f"<p>{html.escape(table.note)}</p>\n" if table.note and not table.rows else ""
    if not table.rows:
        return f"<h2>{title}</h2>\n{note}" if note else ""
    caption = f"<caption>{html.escape(table.note)}</caption>\n" if table.note else ""
    heads = "".join(_cell("th", "col", column, column.head) for column in table.columns)
    rows = "".join(f"<tr>{_row(table.columns, row)}</tr>\n" for row in table.rows)
    return f"""<h2>{title}</h2>
<div class="wide" role="region" aria-label="{title}" tabindex="0"><table>
{caption}<thead><tr>{heads}</tr></thead>
<tbody>
{rows}</tbody></table></div>
"""


def _row(columns: Sequence[Column], row: Sequence[str]) -> str:
    head, *cells = zip(columns, row, strict=True)
    return _cell("th", "row", *head) + "".join(_cell("td", "", *cell) for cell in cells)


def _cell(tag: str, scope: str, column: Column, text: str) -> str:
    attributes = f' scope="{scope}"' if scope else ""
    attributes += ' class="number"' if column.is_number else ""
    return f"<{tag}{attributes}>{html.escape(text)}</{tag}>"
