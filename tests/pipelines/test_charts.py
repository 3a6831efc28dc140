"""The charts of report and audit, and their pages: axes, tables and captions. No Spark; the reports are
constructed by hand.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import pipeline_arguments as common
from kafka_compat.pipelines import audit_plot, report_plot
from kafka_compat.pipelines.audit_counts import Bucket, Count, Difference, differences_between
from kafka_compat.pipelines.audit_plot import span_of
from kafka_compat.pipelines.log_report import KeyLine, LogReport, PartitionLine
from kafka_compat.pipelines.plot_page import DARK, LIGHT, Origin, Theme, size_text, styled

MIB = 1024 * 1024
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
START_MS = 1_356_998_400_000
"""2013-01-01T00:00Z."""
ORIGIN = Origin("kafka-compat pipeline report --log-dir '/a <b>'", "abc, broker 1", 1_764_000_000_000)


def partition(topic: str, number: int, rows: int, size: int, due: int = 0, **more: Any) -> PartitionLine:
    values = {"value_bytes_p50": 100, "value_bytes_p99": 100, "value_bytes_max": 100, **more}
    parts = {"rows": rows, "size_bytes": size, "raw_bytes": 2 * size, "codecs": ("zstd",), "future_rows": 0}
    left = {"due_rows": due, "due_bytes": due * size // max(rows, 1), "next_due_ms": START_MS}
    return PartitionLine(topic, number, **{**parts, **values, **left})


@pytest.fixture
def report() -> LogReport:
    partitions = [
        partition("orders", 0, 1000, 30 * MIB, due=250),
        partition("orders", 1, 3000, 10 * MIB),
        partition("$x_1$", 0, 500, 2 * MIB, value_bytes_p99=5000, value_bytes_max=1_000_000),
    ]
    keys = [KeyLine("orders", "<i>$k$</i>", 1200, 0.3), KeyLine("$x_1$", "other", 5, 0.01)]
    return LogReport(partitions, keys, 1.0)


def drawn(report: LogReport, theme: Theme = LIGHT) -> dict[str, Any]:
    """Draw the report, and return its axes by title, with their final layout."""
    with styled(theme):
        figure = report_plot.draw(report, theme)
        figure.draw_without_rendering()
    return {axes.get_title(loc="left").split(",")[0]: axes for axes in figure.axes}


def names(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_each_axis_in_the_report_is_labeled_with_its_unit(report: LogReport) -> None:
    fields = drawn(report)
    assert {title: axes.get_xlabel() for title, axes in fields.items()} == {
        "Space by topic": "MiB on disk",
        "Hot keys by topic": "% of the topic's records",
        "Records by partition": "records",
        "Size of a value by partition": "size of a value, logarithmic",
    }
    assert names(fields["Space by topic"]) == ["orders", "$x_1$"]
    assert names(fields["Records by partition"]) == ["$x_1$-0", "orders-0", "orders-1"]
    assert names(fields["Hot keys by topic"]) == ["orders   <i>$k$</i>", "$x_1$   other"]
    ticks = [label.get_text() for label in fields["Size of a value by partition"].get_xticklabels()]
    assert all(re.fullmatch(r"\d+ (B|KiB|MiB)", tick) for tick in ticks)
    counts = [label.get_text() for label in fields["Records by partition"].get_xticklabels()]
    assert counts[0] == "0" and all(re.fullmatch(r"\d{1,3}(,\d{3})*", count) for count in counts)
    assert "," in counts[-1]


def test_the_space_chart_shows_the_data_that_retention_will_delete(report: LogReport) -> None:
    """The bar of the records due for deletion starts at the end of the other bar, and is hatched for black
    and white print.
    """
    bars = {bars.get_label(): list(bars) for bars in drawn(report)["Space by topic"].containers}
    assert [bar.get_width() for bar in bars["stays"]] == [32.5, 2]
    assert [(bar.get_x(), bar.get_width()) for bar in bars["due for deletion"]] == [(32.5, 7.5), (2, 0)]
    assert {bar.get_hatch() for bar in bars["due for deletion"]} == {"////"}
    assert {bar.get_hatch() for bar in bars["stays"]} == {None}


def test_equal_quantiles_remain_distinguishable(report: LogReport) -> None:
    """Equal quantiles remain distinguishable: each is drawn at a different height and with a different
    marker.
    """
    axes = drawn(report)["Size of a value by partition"]
    marks = {line.get_label(): line for line in axes.get_lines()}
    assert list(marks) == ["median", "99th percentile", "largest"]
    assert len({line.get_marker() for line in marks.values()}) == 3
    heights = [height for line in marks.values() for height in line.get_ydata()]
    assert len(set(heights)) == 9
    assert marks["largest"].get_xdata()[0] == 1_000_000
    for row in range(3):
        assert sorted(round(line.get_ydata()[row]) for line in marks.values()) == [row] * 3


def test_the_partition_chart_marks_the_mean_of_the_topic(report: LogReport) -> None:
    axes = drawn(report)["Records by partition"]
    (marks,) = axes.collections
    assert [tuple(place) for place in marks.get_offsets()] == [(2000, 1), (2000, 2)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_chart_colors_contrast_with_the_background(report: LogReport, theme: Theme) -> None:
    """WCAG 2.1 requires a contrast of 4.5:1 for text and 3:1 for graphics."""
    assert drawn(report, theme)["Space by topic"].get_facecolor()[:3] == pytest.approx(
        _rgb(theme.paper), abs=0.01
    )
    for color, least in [(theme.ink, 4.5), (theme.faint, 4.5)] + [(c, 3.0) for c in theme[4:]]:
        assert _contrast(color, theme.paper) >= least, color


def _rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(color)]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_sizes_are_rounded_to_three_significant_digits_and_have_a_unit() -> None:
    sizes = (0, 512, 1536, 48 * MIB + MIB // 5, 1023 * MIB, 5 * 1024**3)
    assert [size_text(size) for size in sizes] == [
        "0 B",
        "512 B",
        "1.50 KiB",
        "48.2 MiB",
        "1023 MiB",
        "5.00 GiB",
    ]


# --- the report page


class Page(HTMLParser):
    """The contents of a page: cells with attributes, table heads, images and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[tuple[str, dict[str, str | None], str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag in ("th", "td"):
            self.cells.append((tag, dict(attributes), ""))

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.elements and self.elements[-1][0] in ("th", "td") and data.strip():
            tag, attributes, _ = self.cells[-1]
            self.cells[-1] = (tag, attributes, data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_the_report_page_has_accessible_tables(report: LogReport, tmp_path: Path) -> None:
    png, html = report_plot.plot(tmp_path / "report", report, ORIGIN)
    assert png.read_bytes().startswith(b"\x89PNG") and b"abc, broker 1" not in html.read_bytes()[:500]
    text = html.read_text()
    page = Page(text)
    heads = [(attributes.get("scope"), text) for tag, attributes, text in page.cells if tag == "th"]
    assert {scope for scope, _ in heads} == {"col", "row"}
    assert ("col", "Next due (UTC)") in heads and ("col", "On disk") in heads and ("row", "orders") in heads
    for _, attributes, cell in page.cells:
        if re.fullmatch(r"[\d,.]+( (B|KiB|MiB)|%)?", cell) and attributes.get("scope") != "row":
            assert attributes.get("class") == "number", cell
    assert "font-variant-numeric: tabular-nums" in text and ".number { text-align: right }" in text
    assert "color-scheme: light dark" in text
    assert "Made2025-11-24 16:00:00 UTC" in page.text and "Clusterabc, broker 1" in page.text
    assert "kafka-compat pipeline report --log-dir '/a <b>'" in page.text and "<b>" not in text
    (picture,), (dark,) = page.all("img"), page.all("source")
    assert "3 partitions of 2 topics" in str(picture["alt"]) and "orders 40.0 MiB" in str(picture["alt"])
    assert "dark" in str(dark["media"]) and dark["srcset"] != picture["src"]
    assert all(
        str(source).startswith("data:image/png;base64,") for source in (dark["srcset"], picture["src"])
    )
    assert page.all("html") == [{"lang": "en"}]


# --- the audit charts


def tier(rows: int, **changed: int) -> dict[Bucket, Count]:
    """Return counts for each hour of 40 days in two partitions: `rows` records, or the number in
    `changed`.
    """
    counts = {(p, START_MS + hour * HOUR_MS): Count(rows, 7) for p in range(2) for hour in range(40 * 24)}
    for hour, other in changed.items():
        counts[0, START_MS + int(hour.removeprefix("h")) * HOUR_MS] = Count(other, 8)
    return counts


@pytest.fixture
def tiers() -> dict[str, dict[Bucket, Count]]:
    return {"sent": tier(10), "paris": tier(10), "_oslo $1": tier(10, h5=9, h100=12, h700=10)}


def differences(tiers: dict[str, dict[Bucket, Count]]) -> list[Difference]:
    first, *others = tiers
    return [d for name in others for d in differences_between(tiers[first], name, tiers[name])]


def fields(tiers: dict[str, dict[Bucket, Count]], bucket_ms: int = HOUR_MS) -> tuple[Any, list[Any]]:
    with styled(LIGHT):
        figure: Any = audit_plot.draw(tiers, differences(tiers), bucket_ms, LIGHT)
        figure.draw_without_rendering()
    return figure, figure.axes


def test_each_tier_has_a_subplot_with_the_same_axes(tiers: dict[str, dict[Bucket, Count]]) -> None:
    figure, axes = fields(tiers)
    assert [one.get_title(loc="left") for one in axes] == [
        "sent: 19,200 records, the reference",
        "paris: 19,200 records, matches",
        "_oslo $1: 19,201 records, 3 buckets differ",
        "More (+) or fewer (−) records than sent",
    ]
    assert len({one.get_ylim() for one in axes[:3]}) == len({one.get_xlim() for one in axes}) == 1
    assert figure._supylabel.get_text() == "records per 3 hours"
    dotted = [patch.get_linestyle() for patch in axes[2].patches]
    assert dotted[:2] == ["solid", "solid"] and len(dotted) == 3 and dotted[2] != "solid"


def test_the_time_axis_is_in_utc_with_the_year(tiers: dict[str, dict[Bucket, Count]]) -> None:
    last = fields(tiers)[1][-1]
    assert last.get_xlabel() == "time of the records, UTC, 2013-01-01 00:00 to 2013-02-10 00:00"
    ticks = [label.get_text() for label in last.get_xticklabels()]
    assert ticks and all(re.fullmatch(r"2013-\d\d-\d\d", tick) for tick in ticks)
    hours = {"a": {(0, START_MS + n * HOUR_MS): Count(1, 1) for n in range(5)}}
    first = fields({**hours, "b": hours["a"]})[1][-1].get_xticklabels()[0].get_text()
    assert first == "2013-01-01\n00:00"


def test_differences_are_marked_by_shape_at_the_time_of_occurrence(
    tiers: dict[str, dict[Bucket, Count]],
) -> None:
    axes = fields(tiers)[1]
    found = {
        line.get_marker(): line.get_xdata()[0]
        for line in axes[2].get_lines()
        if line.get_marker() not in ("None", "")
    }
    when = {"v": 5, "^": 100, "D": 700}
    middle = {mark: START_MS / 1000 + (hour + 0.5) * 3600 for mark, hour in when.items()}
    assert {mark: time.timestamp() for mark, time in found.items()} == pytest.approx(middle)
    assert not [line for line in axes[1].get_lines() if line.get_marker() in when]
    told = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert told == ["lost", "duplicated", "changed", "as in sent"]
    more = [line for line in axes[3].get_lines() if len(line.get_ydata()) == 2 and line.get_marker() == "s"]
    assert [list(line.get_ydata()) for line in more] == [[-1, 2]]
    assert [text.get_text().strip() for text in axes[3].get_legend().get_texts()] == ["_oslo $1"]


def test_identical_tiers_are_drawn_without_a_subplot_of_differences() -> None:
    assert len(fields({"sent": tier(3), "held": tier(3)})[1]) == 2


def test_an_outlying_timestamp_does_not_hide_other_timestamps() -> None:
    """An outlier is outside of the chart, and the axis label says so. Two clusters of times are both
    shown.
    """
    counts = tier(10)
    stray = {**counts, (0, 0): Count(1, 1), (0, 400_000_000_000_000): Count(1, 1)}
    span = span_of([counts, stray], HOUR_MS)
    assert (span.first_ms, span.strays, span.step_ms) == (START_MS, 2, 3 * HOUR_MS)
    assert sum(span.rows(stray)) == 19_200
    assert (
        fields({"a": counts, "b": stray})[1][-1]
        .get_xlabel()
        .endswith("; 2 buckets far outside the range are not shown")
    )
    halves = {**counts, **{(0, when + 80 * DAY_MS): count for (_, when), count in counts.items()}}
    assert span_of([halves], HOUR_MS).strays == 0
    assert span_of([{}], HOUR_MS).steps == 1


def test_the_audit_page_lists_the_differences(tiers: dict[str, dict[Bucket, Count]], tmp_path: Path) -> None:
    places = {"sent": "header of 127.0.0.1:9092/flights, cluster abc"}
    found = differences(tiers)
    _, html = audit_plot.plot(tmp_path / "audit", tiers, found, HOUR_MS, places, ORIGIN)
    page = Page(html.read_text())
    rows = [text for _, _, text in page.cells]
    when = datetime.fromtimestamp(START_MS / 1000 + 5 * 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    place = rows.index(when)
    assert rows[place - 2 : place + 5] == ["_oslo $1", "0", when, "10", "9", "-1", "lost"]
    assert "Hour from (UTC)" in rows and places["sent"] in rows
    summary = "_oslo $1: 1 lost, 1 duplicated, 1 changed"
    assert summary in page.text and summary in str(page.all("img")[0]["alt"])
    equal = audit_plot.page({"sent": tier(3), "held": tier(3)}, [], HOUR_MS, {}, ORIGIN)
    assert equal.summary == "All 2 tiers contain the same 5,760 records, by partition and hour."


def test_the_command_in_the_caption_does_not_contain_passwords() -> None:
    line = ["pipeline", "audit", "--plot", "a b", "--kafka-option", "sasl.jaas.config=x password='p';"]
    line += ["--kafka-option=ssl.key.password=secret", "--kafka-option", "security.protocol=SSL"]
    assert common.command(argparse.Namespace(line=line)) == (
        "kafka-compat pipeline audit --plot 'a b' --kafka-option 'sasl.jaas.config=[hidden]' "
        "'--kafka-option=ssl.key.password=[hidden]' --kafka-option security.protocol=SSL"
    )
