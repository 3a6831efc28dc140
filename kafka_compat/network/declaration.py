"""A handler, and what it says of itself."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from kafka_compat.protocol.api_keys import ApiKey

Function = TypeVar("Function")


class Declaration(NamedTuple):
    """What a handler says of itself: its API, its first and last version, whether only a broker of a cluster
    serves it, and whether only one that shows what clients push of their metrics.
    """

    api_key: ApiKey
    low: int
    high: int
    cluster: bool
    telemetry: bool


class Handler(Generic[Function]):
    """What stands under an API's name in its module: the function, and its declaration. (Not an attribute of
    the function: compiled ones have none.)
    """

    __slots__ = ("declaration", "function")

    def __init__(self, declaration: Declaration, function: Function) -> None:
        self.declaration = declaration
        self.function = function
