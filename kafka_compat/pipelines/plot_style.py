"""The style of pictures, for light and dark screens.

Colours can be told apart by the colour-blind. Each series also has a hatch, a marker or a dash of its own,
since some readers print in black and white.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

DPI = 160
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Theme(NamedTuple):
    """Colours of a picture; `first` to `third` are for what it shows, after Okabe and Ito."""

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
    """Figures made within have the theme's colours. What they say is text, whatever signs are in it."""
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
        # A sign that the font lacks is drawn as a box; the table has it.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


def unit_of(values: Sequence[int]) -> tuple[str, int]:
    """The unit in which the greatest of these sizes in bytes reads well, and its bytes."""
    power = 0
    while max(values, default=0) >= 1024 ** (power + 1) and power < len(_UNITS) - 1:
        power += 1
    return _UNITS[power], 1024**power


def size_text(size_bytes: float) -> str:
    """A size with three digits and its unit: 512 B, 1.50 KiB, 48.2 MiB."""
    unit, factor = unit_of([int(size_bytes)])
    value = size_bytes / factor
    digits = 0 if unit == "B" or value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def shortened(text: str, length: int = 28) -> str:
    """At most so many characters of a name, its middle left out."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


def rows_of(axes: Any, names: Sequence[str]) -> None:
    """A line of the picture for each name, the first one above."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def thousands(axis: Any) -> None:
    """Ticks at whole numbers, with a comma at each thousand."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def sizes(axis: Any) -> None:
    """Ticks on a logarithmic axis of bytes, at powers of two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=2, numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: size_text(value).replace(".00", "").replace(".0", ""))
    )


def titled(axes: Any, title: str, *, with_room: bool = False) -> None:
    """A title, and between it and what is drawn a legend where there are things to tell apart; `with_room`
    there is room for one in any case.
    """
    labelled = axes.get_legend_handles_labels()[0]
    axes.set_title(title, pad=26 if labelled or with_room else 8)
    if labelled:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.1, "borderpad": 0.3}
        axes.legend(ncols=4, fontsize=8.5, columnspacing=1.6, handletextpad=0.5, **place)
