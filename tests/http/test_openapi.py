"""The OpenAPI document and the page of the HTTP API, both generated from the routes."""

from __future__ import annotations

import json
import urllib.request
from html.parser import HTMLParser

from kafka_compat.http.openapi import document, page
from kafka_compat.http.routes import Answer, Call, Route
from kafka_compat.testing import KafkaBroker


async def nothing(call: Call) -> Answer:
    return None


ROUTES = [
    Route(
        "POST",
        "/groups/{group}/x/{member}",
        nothing,
        "do <it> & more",
        {"delay_ms": "integer: how long"},
        {"state": "string: which"},
    ),
    Route("GET", "/groups/{group}/x/{member}", nothing, "see it"),
]


def test_the_openapi_document_describes_paths_parameters_and_bodies() -> None:
    found = document(ROUTES, "http://127.0.0.1:1")
    assert found["openapi"] == "3.1.0"
    (path,) = found["paths"]
    assert path == "/groups/{group}/x/{member}"
    post, get = found["paths"][path]["post"], found["paths"][path]["get"]
    assert [(each["name"], each["in"]) for each in post["parameters"]] == [
        ("group", "path"),
        ("member", "path"),
        ("state", "query"),
    ]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"] == {"delay_ms": {"type": "integer", "description": "how long"}}
    assert "requestBody" not in get


class Reader(HTMLParser):
    """Collects the texts of an HTML page, and the resources that it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.loaded: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "action") or tag == "link"]


def test_the_api_page_shows_every_route_without_external_resources() -> None:
    reader = Reader()
    reader.feed(page(ROUTES, "http://127.0.0.1:1"))
    assert "do <it> & more" in reader.texts and "delay_ms" in reader.texts and "state" in reader.texts
    assert reader.loaded == []


def test_a_broker_serves_the_openapi_document_of_its_own_routes() -> None:
    with KafkaBroker() as broker:
        url = broker.control.url
        with urllib.request.urlopen(f"{url}/openapi.json", timeout=20) as answer:
            told = json.load(answer)
        assert "/control/v1/time" in told["paths"]
        with urllib.request.urlopen(f"{url}/", timeout=20) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            text = answer.read().decode()
        assert all(path in text for path in told["paths"])
