"""Describe the HTTP routes as an OpenAPI 3.1 document, and as an HTML page. No I/O."""

import html
import re
from collections.abc import Sequence
from typing import Any

from kafka_compat.http.routes import Route

_NAMES = re.compile(r"\{(\w+)\}")


_VERSION = "1"


def document(routes: Sequence[Route], url: str) -> dict[str, Any]:
    """Return the OpenAPI document of all routes that have a summary."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if not route.summary:
            continue
        operation: dict[str, Any] = {
            "summary": route.summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _NAMES.findall(route.path)
            ]
            + [{"name": name, "in": "query", **_described(text)} for name, text in route.query.items()],
            "responses": {
                "200": {"description": "success"},
                "default": {
                    "description": "error, with the reason and a remedy (RFC 9457)",
                    "content": {"application/problem+json": {}},
                },
            },
        }
        if route.body:
            properties = {
                name: {**found["schema"], "description": found["description"]}
                for name, found in ((name, _described(text)) for name, text in route.body.items())
            }
            content = {"application/json": {"schema": {"type": "object", "properties": properties}}}
            operation["requestBody"] = {"content": content}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "kafka-compat", "version": _VERSION},
        "servers": [{"url": url}],
        "paths": paths,
    }


def _described(text: str) -> dict[str, Any]:
    """Parse the description of a parameter, such as `integer: milliseconds`."""
    kind, _, meaning = text.partition(": ")
    return {"schema": {"type": kind}, "description": meaning}


def page(routes: Sequence[Route], url: str) -> str:
    """Return the documentation of the routes as a self-contained HTML page."""
    rows = "\n".join(_row(route, url) for route in routes if route.summary)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>kafka-compat: HTTP API</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
section {{ border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: .5rem 0 }}
h2 {{ font: 600 1rem ui-monospace, monospace; margin: .5rem 0 0; overflow-wrap: anywhere }}
dt {{ font-family: ui-monospace, monospace }} dd {{ margin: 0 0 .25rem 1.5rem }}
pre {{ overflow-x: auto; padding: .5rem; background: color-mix(in srgb, currentColor 8%, transparent) }}
</style>
<h1>HTTP API</h1>
<p>OpenAPI document: <a href="/openapi.json">openapi.json</a></p>
<main>
{rows}
</main>
</html>
"""


def _row(route: Route, url: str) -> str:
    fields = {**route.query, **route.body}
    given = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in fields.items()
    )
    body = " -d '{" + ", ".join(f'"{name}": …' for name in route.body) + "}'" if route.body else ""
    query = "?" + "&".join(f"{name}=…" for name in route.query) if route.query else ""
    method = "" if route.method == "GET" else f"-X {route.method} "
    command = f"curl {method}'{url}{route.path}{query}'{body}"
    return (
        f"<section><h2>{route.method} {html.escape(route.path)}</h2><p>{html.escape(route.summary)}</p>"
        f"<dl>{given}</dl><pre>{html.escape(command)}</pre></section>"
    )
