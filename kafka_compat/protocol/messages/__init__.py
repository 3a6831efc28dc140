"""Message classes: one module for each API, named after its key and imported when the API is first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.protocol.schema import Message


@cache
def request_class(api_key: int) -> type[Message]:
    """Return the class of an API's request. Raises LookupError for a key without a schema."""
    return _classes(api_key)[0]


@cache
def response_class(api_key: int) -> type[Message]:
    """Return the class of an API's response. Raises LookupError for a key without a schema."""
    return _classes(api_key)[1]


@cache
def _classes(api_key: int) -> tuple[type[Message], type[Message]]:
    try:
        name = ApiKey(api_key).name
        module = import_module(f"{__name__}.{name.lower()}")
    except (ValueError, ModuleNotFoundError):
        raise LookupError(f"no schema for API key {api_key}") from None
    stem = name.title().replace("_", "")
    return getattr(module, stem + "Request"), getattr(module, stem + "Response")
