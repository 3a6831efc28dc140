"""Kafka's official message definitions, read from the jars of a release."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any, NamedTuple

from kafka_compat.protocol.versions import NONE, Versions, parse_versions
from tests.support.kafka_jars import NEWEST_VERSION, jars

RELEASES = ("3.9.1", "4.1.0", NEWEST_VERSION)

_JAVA_PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-share-coordinator": "org.apache.kafka.coordinator.share.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
}

# Later releases renamed an API, record types and fields. Their bytes are the same.
_OTHER_NAMES = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
    "ListClientMetricsResourcesResponse.ClientMetricsResources": "ConfigResources",
    "ListClientMetricsResourcesResponse.ClientMetricsResource": "ConfigResource",
    "ListClientMetricsResourcesResponse.Name": "ResourceName",
    "LegacyOffsetCommitKey": "OffsetCommitKey",
    "TxnOffsetCommitRequest.GenerationId": "GenerationIdOrMemberEpoch",
    "VoteRequest.CandidateEpoch": "ReplicaEpoch",
    "VoteRequest.CandidateId": "ReplicaId",
    "VoteRequest.CandidateDirectoryId": "ReplicaDirectoryId",
}


class FieldAt(NamedTuple):
    """A field in one version of a message. `tag` is None unless it is a tagged field."""

    name: str  # ours, in snake_case
    json_name: str
    type: str  # of the element, for an array: "int32", or the name of a struct
    is_array: bool
    nullable: bool
    tag: int | None
    default: object
    is_map_key: bool
    children: tuple[FieldAt, ...]  # of a struct, or of the elements


class Definition:
    """A message of one release."""

    def __init__(self, content: dict[str, Any], java_package: str) -> None:
        self.official_name: str = content["name"]
        self.name = _OTHER_NAMES.get(self.official_name, self.official_name)
        self.kind: str = content["type"]
        self.api_key: int | None = content.get("apiKey")
        self.listeners: list[str] = content.get("listeners") or []
        self.versions = parse_versions(content["validVersions"])
        self.newest_is_unstable = bool(content.get("latestVersionUnstable"))
        self.flexible = parse_versions(content.get("flexibleVersions", "none"))
        suffix = "Data" if self.kind in ("request", "response") else ""
        self.java_class = f"{java_package}.{self.official_name}{suffix}"
        self._fields: list[dict[str, Any]] = content.get("fields") or []
        self._structs: dict[str, list[dict[str, Any]]] = {
            common["name"]: common["fields"] for common in content.get("commonStructs", ())
        }

    def our_version(self, version: int) -> int:
        """Return the version of our class. Our classes use the record type as the version of a key; since
        Kafka 4.0, definitions of keys store the type as their api key instead.
        """
        return self.api_key or 0 if self.kind == "coordinator-key" else version

    def fields_at(self, version: int) -> tuple[FieldAt, ...]:
        """Return the fields of a version, in the order of the definition."""
        return self._at(self._fields, version)

    def _at(self, fields: list[dict[str, Any]], version: int) -> tuple[FieldAt, ...]:
        return tuple(self._field_at(field, version) for field in fields if version in _versions(field))

    def _field_at(self, field: dict[str, Any], version: int) -> FieldAt:
        official_type: str = field["type"]
        is_array = official_type.startswith("[]")
        base = self._renamed(official_type.removeprefix("[]"))
        tagged = version in parse_versions(field.get("taggedVersions", "none")) and version in self.flexible
        children = field.get("fields") or self._structs.get(base) or []
        return FieldAt(
            name=snake_case(self._renamed(field["name"])),
            json_name=field["name"][0].lower() + field["name"][1:],
            type=base,
            is_array=is_array,
            nullable=version in parse_versions(field.get("nullableVersions", "none")),
            tag=int(field["tag"]) if tagged else None,
            default=_default(base, is_array, bool(children), field.get("default")),
            is_map_key=bool(field.get("mapKey")),
            children=self._at(children, version),
        )

    def _renamed(self, name: str) -> str:
        return _OTHER_NAMES.get(f"{self.official_name}.{name}", name)


@cache
def definitions(release: str) -> dict[str, Definition]:
    """Return every message of a release that has stable versions, by its official name, with only those
    versions.
    """
    found = {}
    for artifact, java_package in _JAVA_PACKAGES.items():
        if artifact == "kafka-share-coordinator" and release == "3.9.1":
            # Kafka 3.9 has no share coordinator.
            continue
        with zipfile.ZipFile(jars(release) / f"{artifact}-{release}.jar") as jar:
            for entry in jar.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    definition = Definition(_parse(jar.read(entry).decode()), java_package)
                    if definition.versions != NONE and definition.versions.numbers():
                        found[definition.official_name] = definition
    for definition in found.values():
        request = found.get(definition.official_name.replace("Response", "Request"), definition)
        if request.newest_is_unstable:
            definition.versions = Versions(definition.versions.low, definition.versions.high - 1)
    return found


def snake_case(name: str) -> str:
    """Return our name for a field: "topicId" becomes topic_id, "isKRaftController" becomes
    is_kraft_controller.
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words).lower()


def _versions(field: dict[str, Any]) -> Versions:
    return parse_versions(field.get("versions") or field["taggedVersions"])


def _default(base: str, is_array: bool, is_struct: bool, text: object) -> object:
    """Return the default as a Python value. "struct" stands for a struct with its own defaults."""
    if text == "null":
        return None
    if is_array:
        return []
    if is_struct:
        return "struct"
    spelled = "" if text is None else str(text)
    if base == "bool":
        return spelled.lower() == "true"
    if base.startswith(("int", "uint")):
        return int(spelled or "0", 0)
    if base == "float64":
        return float(spelled or "0")
    if base == "bytes":
        return b""
    return {"uuid": "zero", "records": None}.get(base, spelled)


def _parse(text: str) -> dict[str, Any]:
    """Parse JSON with // comments, which the definitions contain."""
    strings_or_comments = r'("(?:[^"\\]|\\.)*")|//[^\n]*'
    content: dict[str, Any] = json.loads(re.sub(strings_or_comments, lambda found: found[1] or "", text))
    return content
