"""Confluent's API of a schema registry: paths, headers, and the search for referenced schemas. No I/O.

The web console's client (registry.py) and that of Spark's jobs (pipelines/decode/registry.py) send the
requests.
"""

import base64
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from kafka_compat.decoding.plain import NotSo

ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
SERIALIZED: Final = "?format=serialized"
"""Query for the serialized form of a Protobuf schema, in base64."""
_REFERENCES_MAX: Final = 100


def schema_path(schema_id: int) -> str:
    """Return the path of the schema with an ID."""
    return f"/schemas/ids/{schema_id}"


def versions_path(subject: str) -> str:
    """Return the path of a subject's versions."""
    return f"/subjects/{quote(subject, safe='')}/versions"


def version_path(subject: str, version: object) -> str:
    """Return the path of a version of a subject, which may be "latest"."""
    return f"{versions_path(subject)}/{quote(str(version), safe='')}"


def basic_authorization(user_info: str) -> dict[str, str]:
    """Return the header for a user and password. Raises ValueError unless they are given as user:password."""
    if ":" not in user_info:
        raise ValueError("expected user:password")
    return {"Authorization": f"Basic {base64.b64encode(user_info.encode()).decode()}"}


def referenced(
    references: Iterable[Mapping[str, Any]], query: str = ""
) -> Generator[str, Mapping[str, Any] | None, dict[str, str]]:
    """Find the schemas that a schema references: yields the path of each request, expects the response (None:
    not found), and returns the texts by name of the reference, dependencies first. Raises NotSo.
    """
    found: dict[str, str] = {}
    yield from _add(references, query, found, set())
    return found


def _add(
    references: Iterable[Mapping[str, Any]], query: str, found: dict[str, str], begun: set[str]
) -> Generator[str, Mapping[str, Any] | None, None]:
    for each in references:
        name = str(each["name"])
        if name in begun:
            continue
        begun.add(name)
        if len(begun) > _REFERENCES_MAX:
            raise NotSo(f"it references more than {_REFERENCES_MAX} other schemas")
        response = yield version_path(str(each["subject"]), each["version"]) + query
        if response is None:
            raise NotSo(f"the registry lacks the referenced schema {each['subject']}")
        yield from _add(response.get("references", []), query, found, begun)
        found[name] = str(response["schema"])
