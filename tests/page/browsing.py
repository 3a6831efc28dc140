"""A page asked by a program: JSON of views, actions by JSON and by forms."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

WRITING = {"kafka.compat.http.page.enable": "true", "kafka.compat.http.page.write.enable": "true"}
"""The settings of a broker whose page changes things."""


class Asked:
    """What a page answers at the listener of `url`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Status, body and headers."""
        connection = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=60)
        try:
            connection.request(
                method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
            )
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def data(self, view: str, **query: object) -> Any:
        """What is to be seen of a view, as programs are told."""
        status, told = self.try_data(view, **query)
        assert status == 200, told
        return told

    def try_data(self, view: str, **query: object) -> tuple[int, Any]:
        status, body, _ = self.send("GET", f"/ui/{view}.json?{urlencode(query)}")
        return status, json.loads(body)

    def html(self, view: str, **query: object) -> str:
        status, body, _ = self.send("GET", f"/ui/{view}?{urlencode(query)}")
        assert status == 200, body
        return body.decode()

    def act(self, action: str, **fields: object) -> Any:
        """What an action tells a program."""
        status, told = self.try_act(action, **fields)
        assert status == 200, told
        return told

    def try_act(self, action: str, **fields: object) -> tuple[int, Any]:
        body = json.dumps(fields).encode()
        status, found, _ = self.send("POST", f"/ui/{action}", body, Content_Type="application/json")
        return status, json.loads(found)

    def all_messages(self, **query: object) -> list[Any]:
        """Of a whole search, request by request."""
        found: list[Any] = []
        cursor = None
        while True:
            told = self.data("messages", **query, **({"cursor": cursor} if cursor else {}))
            assert told["problems"] == []
            found += told["records"]
            cursor = told["cursor"]
            if cursor is None:
                return found

    def submit(self, page: str, action: str, **fields: str) -> tuple[int, str, str | None]:
        """Send a form of the page `page` as a browser does: status, page, and where it leads."""
        token = re.search(r'name="form_token" value="(\w+)"', page)
        assert token is not None
        body = urlencode({"form_token": token[1], **fields}).encode()
        status, found, headers = self.send(
            "POST", f"/ui/{action}", body, Content_Type="application/x-www-form-urlencoded"
        )
        return status, found.decode(), headers["Location"]
