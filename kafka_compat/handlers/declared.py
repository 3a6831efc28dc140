"""The declarations of all handlers, and the generator of `served.py`.

After adding a handler or changing its versions, run `python -m kafka_compat.handlers.declared` to regenerate
`served.py`. A test compares `served.py` with the declarations.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kafka_compat.handlers
import kafka_compat.handlers.controller
from kafka_compat.api.handler import Declaration, Handler

TABLE = Path(__file__).with_name("served.py")

_HEAD = '''\
"""Generated from the declarations of the handlers by `python -m kafka_compat.handlers.declared`: do not edit.

APIs with their first and last version, in the order of their keys. No other API is
advertised or served.
"""

from kafka_compat.protocol.api_keys import ApiKey

'''


def declarations(package: ModuleType = kafka_compat.handlers) -> list[Declaration]:
    """Import all handlers of a package, and return their declarations, sorted by API key."""
    found: Iterator[Any] = (
        getattr(importlib.import_module(f"{package.__name__}.{module.name}"), module.name, None)
        for module in pkgutil.iter_modules(package.__path__)
    )
    return sorted(item.declaration for item in found if isinstance(item, Handler))


def table() -> str:
    """Return the content of `served.py`."""
    everything = declarations()
    alone = "".join(_row(one) for one in everything if not (one.cluster or one.telemetry or one.quorum))
    cluster = "".join(_row(one) for one in everything if one.cluster)
    telemetry = "".join(_row(one) for one in everything if one.telemetry)
    quorum = "".join(_row(one) for one in everything if one.quorum)
    controller = "".join(map(_row, declarations(kafka_compat.handlers.controller)))
    return (
        f"{_HEAD}SERVED: dict[ApiKey, tuple[int, int]] = {{\n{alone}}}\n"
        '"""APIs of every broker."""\n\n'
        f"CLUSTER_SERVED: dict[ApiKey, tuple[int, int]] = {{\n    **SERVED,\n{cluster}}}\n"
        '"""APIs of a broker in a cluster, as in Apache Kafka with ZooKeeper."""\n\n'
        f"TELEMETRY_SERVED: dict[ApiKey, tuple[int, int]] = {{\n{telemetry}}}\n"
        '"""Additional APIs of a broker that receives metrics of clients (KIP-714)."""\n\n'
        f"QUORUM_SERVED: dict[ApiKey, tuple[int, int]] = {{\n{quorum}}}\n"
        '"""Additional APIs of a broker whose cluster has a metadata quorum."""\n\n'
        f"CONTROLLER_SERVED: dict[ApiKey, tuple[int, int]] = {{\n{controller}}}\n"
        '"""APIs of controller listeners."""\n'
    )


def _row(one: Declaration) -> str:
    return f"    ApiKey.{one.api_key.name}: ({one.low}, {one.high}),\n"


if __name__ == "__main__":
    TABLE.write_text(table())
