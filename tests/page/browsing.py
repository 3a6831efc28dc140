"""Requests to a web console with changes enabled, as programs and browser forms send them."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.parse import urlencode

from tests.page.site import PAGE, Answer, Site

WRITING = {**PAGE, "kafka.compat.http.page.write.enable": "true"}
"""Settings of a broker whose web console allows changes."""


class Asked(Site):
    """A web console with changes enabled; see the module."""

    def try_data(self, view: str, **query: object) -> tuple[int, Any]:
        """Return the status and the JSON response."""
        answer = self.ask("GET", f"/ui/{view}.json?{urlencode(query)}")
        return answer.status, answer.data

    def html(self, view: str, **query: object) -> str:
        answer = self.get(view, **query)
        assert answer.status == 200, answer.text
        return answer.text

    def act(self, action: str, **fields: object) -> Any:
        """Execute an action, and return the JSON response."""
        status, told = self.try_act(action, **fields)
        assert status == 200, told
        return told

    def try_act(self, action: str, **fields: object) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        answer = self.ask("POST", f"/ui/{action}", json.dumps(fields), headers)
        return answer.status, answer.data

    def submit(self, page: Answer, action: str, **fields: str) -> Answer:
        """Submit a form of a page as a browser does."""
        return self.post_form(action, {"form_token": page.form_token(), **fields})

    def download(self, view: str, **query: object) -> tuple[bytes, str, str]:
        """Return the content of a file, its Content-Disposition header and its content type."""
        with urllib.request.urlopen(f"{self.url}/ui/{view}?{urlencode(query)}") as response:
            headers = response.headers
            return response.read(), headers["Content-Disposition"], headers["Content-Type"]

    def all_messages(self, **query: object) -> list[Any]:
        """Return all messages of a search, which takes several requests."""
        found: list[Any] = []
        cursor = None
        while True:
            told = self.data("messages", **query, **({"cursor": cursor} if cursor else {}))
            assert told["problems"] == []
            found += told["records"]
            cursor = told["cursor"]
            assert told["has_more"] == (cursor is not None)
            if cursor is None:
                return found
