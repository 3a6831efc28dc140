"""Unauthenticated requests to the HTTP listener of a broker, and the samples in its responses."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Maps (name, labels) to values."""


def get(url: str, path: str, **headers: str) -> tuple[int, bytes, str]:
    """Return status, body and content type."""
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
    """Parse all samples with Prometheus's parser, and check that none is repeated."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


class Scrape:
    """The result of one scrape of `path`."""

    def __init__(self, url: str, path: str = "/metrics") -> None:
        status, body, content_type = get(url, path)
        assert status == 200 and content_type == "text/plain; version=0.0.4; charset=utf-8", body
        self.text = body.decode()
        self.samples = samples_of(self.text)

    def value(self, name: str, **labels: object) -> float | None:
        """Return a sample's value, or None if it is missing."""
        return self.samples.get((name, frozenset((key, str(value)) for key, value in labels.items())))

    def names(self) -> set[str]:
        return {name for name, _ in self.samples}
