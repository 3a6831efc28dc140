"""meta.properties: to whom a log directory belongs for good."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from kafka_compat.storage.directories.checkpoints import META_PROPERTIES, encode_properties
from kafka_compat.storage.errors import InconsistentMetaProperties
from kafka_compat.storage.filesystem import Filesystem, RealFilesystem

_NUMBERS = ("broker.id", "node.id", "version")


def read(filesystem: Filesystem, directory: str) -> dict[str, str]:
    """What the file says; nothing when there is none. Raises InconsistentMetaProperties, which names the
    line, for a file that is no properties file: its directory may belong to anybody.
    """
    path = f"{directory}/{META_PROPERTIES}"
    try:
        content = filesystem.read_file(path)
    except FileNotFoundError:
        return {}
    properties: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not name.isprintable() or not value.isprintable():
            raise _unreadable(path, number, "is no name=value")
        if name in _NUMBERS and not value.removeprefix("-").isdecimal():
            raise _unreadable(path, number, f"says {name}={value}, which is no number")
        properties[name] = value
    return properties


def check(directory: str, stored: Mapping[str, str], broker_id: int, cluster_id: str) -> None:
    """Raise InconsistentMetaProperties when the file says that the directory is another broker's."""
    for name, value in {"cluster.id": cluster_id, "broker.id": str(broker_id)}.items():
        if stored.get(name, value) != value:
            raise InconsistentMetaProperties(
                f"{directory}/{META_PROPERTIES} says {name}={stored[name]}, this broker has {name}={value}: "
                "start it with the same, or on other log.dirs"
            )


def write(filesystem: Filesystem, directory: str, broker_id: int, cluster_id: str) -> None:
    """Mark a directory as this broker's."""
    properties = {"broker.id": str(broker_id), "version": "0", "cluster.id": cluster_id}
    filesystem.write_file_atomically(f"{directory}/{META_PROPERTIES}", encode_properties(properties))


def stored_meta_properties(
    directories: Sequence[str], filesystem: Filesystem | None = None
) -> dict[str, str]:
    """The first meta.properties found (`cluster.id`, `broker.id`); empty for new directories. Raises
    InconsistentMetaProperties.
    """
    files = filesystem or RealFilesystem()
    for directory in directories:
        try:
            found = read(files, os.path.abspath(directory))
        except OSError:
            continue
        if found:
            return found
    return {}


def _unreadable(path: str, number: int, problem: str) -> InconsistentMetaProperties:
    return InconsistentMetaProperties(
        f"{path}, line {number} {problem}: restore the file from before it was damaged, "
        "or remove it when the directory is this broker's for certain"
    )
