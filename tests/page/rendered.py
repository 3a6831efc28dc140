"""Pages rendered from given data and served without a broker, with the console's style and security policy.

A broker measures one sample every ten seconds. These pages show an hour that has passed.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from kafka_compat.page.rendering import POLICY, STYLE, Templates
from kafka_compat.page.views.hour import rows_of
from kafka_compat.status.hour import CHARTS, SLOTS, STEP_S, Hour

NOW_MS = 1_795_834_800_000
_NOW_S = (SLOTS + 7) * STEP_S


def past_hour() -> Hour:
    """Return a busy hour: a peak, a restart of the broker, and groups that fall behind and catch up."""
    hour = Hour()
    chance = random.Random(3)
    groups = ["billing", "fraud", "warehouse", "x" * 240]
    hour.follow(groups)
    for slot in range(8, SLOTS + 8):
        at_s = float(slot * STEP_S)
        if 200 <= slot < 215:
            continue
        load = 1 + math.sin(slot / 40) + (3.0 if 100 < slot < 130 else 0.0) + chance.random() / 3
        values = {
            "records": 900 * load,
            "bytes_in": 300_000 * load,
            "bytes_out": 500_000 * (load + chance.random()),
            "requests": 130 * load,
            "busy": min(0.12 * load, 1.0),
            "delay": 0.002 + chance.random() / 300 + (0.05 if slot == 120 else 0),
        }
        hour.put(at_s, values, is_first=slot == 215)
        hour.put_lag("billing", at_s, max(0.0, 40 * math.sin(slot / 25)))
        hour.put_lag("fraud", at_s, 10.0 * slot)
        hour.put_lag("warehouse", at_s, 0.0)
        hour.put_lag(groups[-1], at_s, 86_400.0 * 3)
    return hour


def hour_data(*, long_name: bool = True) -> dict[str, Any]:
    """Return the data of `/ui/hour` after `past_hour`, with or without the group whose name is long."""
    hour = past_hour()
    if not long_name:
        hour.follow(hour.groups[:-1])
    return {
        "charts": [hour.chart(chart, _NOW_S, NOW_MS) for chart in CHARTS],
        "groups": [hour.lag(group, _NOW_S, NOW_MS) for group in hour.groups],
        "groups_count": 17,
        "may_see_process": True,
    }


def chart_data(number: int) -> dict[str, Any]:
    """Return the data of the page of a chart."""
    chart = hour_data()["charts"][number]
    return {**chart, "rows": rows_of(chart)}


def rendered(templates: Templates, view: str, data: Mapping[str, Any]) -> str:
    """Render a view as the console does."""
    context = {
        "it": data,
        "title": "Last hour",
        "current": "/hour",
        "query": {},
        "json_path": f"/{view}.json",
        "writes": True,
        "principal": "User:ANONYMOUS",
        "can_log_out": False,
        "form_token": lambda: "",
    }
    steps = templates.render(f"{view}.html", context)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return str(end.value)


@contextmanager
def served(pages: Mapping[str, str], style: bytes) -> Iterator[str]:
    """Serve pages at /ui/NAME, and yield the URL of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            name = path.removeprefix("/ui/")
            is_style = path == STYLE
            self.send_response(200 if is_style or name in pages else 404)
            self.send_header("Content-Type", "text/css" if is_style else "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(style if is_style else pages.get(name, "").encode())

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
