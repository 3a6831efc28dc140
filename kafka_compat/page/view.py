"""The kinds of views: pages, actions, downloads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from kafka_compat.http.routes import File
from kafka_compat.page.visit import Visit

Data = dict[str, Any]
"""What is to be seen, as json.dumps takes it; a template finds it as `it`."""


class View(NamedTuple):
    """A page that shows something: see the room's docstring."""

    path: str
    """Under /ui, as `/topics`."""
    see: Callable[[Visit], Awaitable[Data]]
    title: str
    summary: str
    """One line, for the list of what can be asked."""
    below: str = ""
    """The path of the menu's entry that it belongs to, unless it has one itself."""
    query: Mapping[str, str] = {}
    """Its parameters, as a Route's."""

    @property
    def menu(self) -> str:
        return self.below or self.path

    @property
    def template(self) -> str:
        """The name of its template."""
        return f"{self.path[1:].replace('-', '_')}.html"


class Shown(NamedTuple):
    """An action that ends with a page."""

    data: Data
    template: str
    title: str
    menu: str


class Done(NamedTuple):
    """An action that leads on: `path` is under /ui, with its query (`visit.link`)."""

    data: Data
    path: str


class Action(NamedTuple):
    """What changes something, by POST."""

    path: str
    act: Callable[[Visit], Awaitable[Shown | Done]]
    summary: str
    body: Mapping[str, str]
    """The fields, as a Route's."""


class Download(NamedTuple):
    """Bytes that a browser puts into a file: a `File` with the file's name."""

    path: str
    give: Callable[[Visit], Awaitable[File]]
    summary: str
    query: Mapping[str, str]
