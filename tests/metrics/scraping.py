"""What a broker answers at its HTTP listener to somebody without a token, and its samples."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""By name and labels."""


def get(url: str, path: str, **headers: str) -> tuple[int, bytes, str]:
    """Status, body and type."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), response.headers["Content-Type"]
    finally:
        connection.close()


def get_json(url: str, path: str) -> tuple[int, Any]:
    status, body, _ = get(url, path)
    return status, json.loads(body)


def samples_of(text: str) -> Samples:
    """All samples, as Prometheus's own parser reads them; none is there twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


class Scrape:
    """What one scrape of `path` tells."""

    def __init__(self, url: str, path: str = "/metrics") -> None:
        status, body, content_type = get(url, path)
        assert status == 200 and content_type == "text/plain; version=0.0.4; charset=utf-8", body
        self.text = body.decode()
        self.samples = samples_of(self.text)

    def value(self, name: str, **labels: object) -> float | None:
        """None where there is no such sample."""
        return self.samples.get((name, frozenset((key, str(value)) for key, value in labels.items())))

    def names(self) -> set[str]:
        return {name for name, _ in self.samples}
