"""The web console of a broker, with requests as programs and browser forms send them."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from kafka_compat.testing import KafkaBroker

PAGE = {"kafka.compat.http.page.enable": "true"}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)

    @property
    def shown(self) -> str:
        """The text that a reader sees, without tags."""
        reader = _Texts()
        reader.feed(self.text)
        return " ".join(" ".join(reader.texts).split())

    def form_token(self) -> str:
        found = re.search(r'name="form_token" value="(\w+)"', self.text)
        assert found is not None, self.text
        return found[1]


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class Site:
    """The web console at a broker's HTTP listener. `headers` are added to every request."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.headers = headers

    @classmethod
    def of(cls, broker: KafkaBroker) -> Site:
        return cls(broker.control.url)

    def ask(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **query: object) -> Answer:
        """Get a page below /ui."""
        return self.ask("GET", f"/ui/{path}?{urlencode(query)}")

    def data(self, path: str, **query: object) -> Any:
        """Return a page's data as JSON."""
        answer = self.ask("GET", f"/ui/{path}.json?{urlencode(query)}")
        assert answer.status == 200, answer.text
        return answer.data

    def rows(self, path: str, field: str, **query: object) -> list[dict[str, Any]]:
        """Return the rows of a list on a page."""
        rows: list[dict[str, Any]] = self.data(path, **query)[field]["rows"]
        return rows

    def post_form(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        return self.ask(
            "POST",
            f"/ui/{path}",
            urlencode(fields),
            {"Content-Type": "application/x-www-form-urlencoded", **headers},
        )
