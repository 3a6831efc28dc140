"""The screen as text: what fits, what is left out, and what hostile names do to it (nothing)."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from kafka_compat.status.room import shares
from kafka_compat.status.rules import problems
from kafka_compat.status.screen import View, draw
from kafka_compat.status.snapshot import Broker, Rates, Snapshot
from kafka_compat.status.units import counted, rate, size
from tests.status.found import GIB, away, group, log_dir, partition, snapshot, topic, up

WIDTH = 80


def text_of(
    found: Snapshot | None,
    rates: Rates | None = None,
    *,
    stale: str | None = None,
    rows: int | None = None,
    height: int | None = None,
    width: int = WIDTH,
) -> list[str]:
    """The lines, on a terminal when there is a height."""
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=height is not None, no_color=True
    )
    wrong = problems(found) if found is not None else []
    with console.capture() as printed:
        console.print(draw(View(found, wrong, rates, stale), console, rows))
    return [line.rstrip() for line in _plain(printed.get()).splitlines()]


def _plain(text: str) -> str:
    for style in ("\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[1;2m"):
        text = text.replace(style, "")
    return text


def busy(topics: int = 1000, groups: int = 1000) -> Snapshot:
    """Much of everything, with long names, and some of it wrong."""
    return snapshot(
        [
            topic(f"{'long-name-' * 12}{number}", partition(0, 1, (1, 2, 3), (1, 2), end=10**12))
            for number in range(topics)
        ],
        [group(f"{'group-of-readers-' * 8}{number}", lag=number * 10**9) for number in range(groups)],
        [log_dir(f"/var/lib/{'folder/' * 20}", 50 * GIB, broker_id=each) for each in range(1, 30)],
        [*(up(each) for each in range(1, 40)), away(40), Broker(41, "a-host." * 20, 9092, "rack" * 9, "3.9")],
    )


def test_a_small_cluster_fits_the_screen() -> None:
    found = snapshot(
        [topic("orders", partition(0, end=1234567), partition(1, end=0)), topic("bills")],
        [group("billing", lag=12345), group("idle", state="Empty")],
        [log_dir()],
    )
    assert text_of(found, Rates({"orders": 12.34, "bills": 0.5})) == [
        "cluster cluster-of-tests  2009-02-13 23:31:30 UTC",
        "",
        "healthy",
        "",
        "BROKERS 1",
        "id  address         rack    state           Kafka  leads  replicas",
        " 1  127.0.0.1:9091  rack-a  up, controller  3.9        3         3",
        "",
        "TOPICS 2 with 3 partitions, 13 records/s written",
        "the largest  partitions  copies    records  on disks  records/s",
        "orders                2       1  1,234,567     200 B         12",
        "bills                 1       1         10     100 B        0.5",
        "",
        "GROUPS 2: 1 Empty, 1 Stable; lag 12,345 records",
        "most lag  type     state   members     lag  worst partition",
        "billing   classic  Stable        1  12,345  12,345 in orders-0",
        "idle      classic  Empty         1       0  -",
        "",
        "DISKS 1 log directory, 1.2 KiB of replicas",
        "broker  directory  replicas     size                       usable",
        "     1  /data             3  1.2 KiB  50.0 GiB of 100.0 GiB (50%)",
    ]


def test_problems_are_shown_first() -> None:
    found = snapshot([topic("orders", partition(0, None, (2,)))], brokers=[up(1), away(2)])
    assert text_of(found)[:14] == [
        "cluster cluster-of-tests  2009-02-13 23:31:30 UTC",
        "",
        "2 problems:",
        "- broker 2 is down: it is not in the cluster; it has 1 replica",
        "- 1 partition of orders has no leader and cannot be written or read (partition",
        "0); broker 2 can become leader again once available",
        "",
        "BROKERS 2, 1 down",
        "id  address         rack    state           Kafka  leads  replicas",
        " 2  -               -       down            -          0         1",
        " 1  127.0.0.1:9091  rack-a  up, controller  3.9        0         0",
        "",
        "TOPICS 1 with 1 partition, 1 without leader, 1 under min ISR",
        "the largest  partitions  copies  records  on disks",
    ]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_lines_are_never_wider_than_the_screen(width: int) -> None:
    lines = text_of(busy(), Rates({}), width=width)
    assert max(map(cell_len, lines)) <= width
    assert "…" in "".join(lines)


@pytest.mark.parametrize("height", [24, 40, 60])
@pytest.mark.parametrize("rates", [None, Rates({})])
def test_the_output_fits_the_height_of_the_terminal(height: int, rates: Rates | None) -> None:
    lines = text_of(busy(), rates, height=height)
    assert height - 4 <= len(lines) < height


def test_omitted_rows_are_counted() -> None:
    text = "\n".join(text_of(busy(), rows=3))
    assert "and 38 brokers more" in text
    assert "and 997 topics more: 997,000,000,000,000 records, 292.1 KiB on disks" in text
    assert "and 997 groups more: lag 496,506,000,000,000 records" in text


def test_the_groups_with_the_most_lag_are_shown_first() -> None:
    groups = [group("a", 1), group("b", 50), group("c", 7), group("broken", error="NOT_COORDINATOR")]
    lines = text_of(snapshot(groups=groups))
    start = next(index for index, line in enumerate(lines) if line.startswith("most lag"))
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == ["broken", "b", "c", "a"]


def test_control_characters_in_names_are_not_printed() -> None:
    hostile = "\x1b[2J\x1b]0;title\x07\r\n\u202egroup [bold]x[/bold] :smile:"
    text = "\n".join(text_of(snapshot(groups=[group(hostile, 3)], missing=["\x1b[31m"]), width=120))
    assert not any(sign in text for sign in ("\x1b", "\x07", "\r", "\u202e"))
    assert r"\x1b[2J\x1b]0;title\x07\r\n\u202egroup [bold]x[/bold] :smile:" in text


def test_wide_characters_count_as_two_cells() -> None:
    lines = text_of(snapshot([topic("订单" * 30), topic("orders")]))
    assert max(map(cell_len, lines)) <= WIDTH
    rows = [line for line in lines if line.startswith(("订单", "orders"))]
    assert cell_len(rows[0]) == cell_len(rows[1])


def test_the_last_state_stays_visible_while_no_broker_responds() -> None:
    lines = text_of(snapshot([topic("orders")]), stale="127.0.0.1:9092: Connection refused")
    assert lines[2:6] == [
        "NO BROKER CAN BE REACHED 127.0.0.1:9092: Connection refused",
        "Last data, from 2009-02-13 23:31:30 UTC:",
        "",
        "healthy",
    ]
    assert "orders" in "\n".join(lines)
    assert text_of(None, stale="x: refused") == ["", "", "NO BROKER CAN BE REACHED x: refused"]


def test_unavailable_data_is_listed_as_unknown() -> None:
    found = snapshot([topic("orders")], missing=["sizes and disks of broker 1: CLUSTER_AUTHORIZATION_FAILED"])
    lines = text_of(found)
    assert "unknown: sizes and disks of broker 1: CLUSTER_AUTHORIZATION_FAILED" in lines
    assert not any(line.startswith("DISKS") for line in lines)


def test_screen_lines_are_divided_among_the_tables() -> None:
    # Each with the titles of its columns, and a line more where rows are left out.
    assert shares([1, 1000, 1000, 1], 24) == [1, 8, 8, 1]
    assert shares([2, 3], 7) == [2, 3]
    assert shares([2, 3], 6) == [2, 1]
    assert shares([5, 5], 4) == [2, 0]
    assert shares([5, 5], 0) == [0, 0]
    assert shares([0], 5) == [0]


def test_sizes_rates_and_counts_have_units() -> None:
    assert [size(number) for number in (0, 1023, 1024, 1536, (1 << 20) - 1, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 MiB",
        "5.0 TiB",
    ]
    assert [rate(number) for number in (0.0, 0.25, 3.0, 9.96, 1234.5)] == ["0", "0.2", "3", "10.0", "1,234"]
    assert counted(1, "record") == "1 record" and counted(2000, "record") == "2,000 records"
