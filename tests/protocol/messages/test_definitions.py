"""Our schemas compared, field by field, with the definitions in Kafka's jars."""

from __future__ import annotations

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, fields_of, schema_of
from tests.protocol.definitions import RELEASES, Definition, FieldAt, definitions
from tests.protocol.known_messages import message_classes

OUT_OF_SCOPE = {
    ApiKey.ENVELOPE: "KRaft controller",
    ApiKey.BROKER_REGISTRATION: "KRaft controller",
    ApiKey.BROKER_HEARTBEAT: "KRaft controller",
    ApiKey.UNREGISTER_BROKER: "KRaft controller",
    ApiKey.CONTROLLER_REGISTRATION: "KRaft controller",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "KRaft controller",
    ApiKey.UNREGISTER_CONTROLLER: "KRaft controller",
}
"""APIs of the releases without a schema in this project, and the features they belong to."""

OWN_APIS = {ApiKey.APPEND_METADATA_RECORDS}
"""APIs that Kafka does not have."""

OURS = {cls.__name__: cls for cls in message_classes()}


@pytest.mark.parametrize("release", RELEASES)
def test_every_api_of_the_release_is_defined(release: str) -> None:
    theirs = [d for d in definitions(release).values() if d.kind in ("request", "response")]
    wanted = {d.name for d in theirs if ApiKey(d.api_key or 0) not in OUT_OF_SCOPE}
    missing = sorted(wanted - OURS.keys())
    assert missing == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", OURS)
def test_each_schema_matches_the_official_definition(release: str, name: str) -> None:
    differences = []
    for definition in definitions(release).values():
        if definition.name == name:
            differences += compare(definition, OURS[name], newest=release == RELEASES[-1])
    assert differences == []


def test_each_schema_covers_the_versions_of_all_releases() -> None:
    wrong = []
    for name, cls in OURS.items():
        if schema_of(cls).api_key in OWN_APIS:
            continue
        theirs = [d for release in RELEASES for d in definitions(release).values() if d.name == name]
        covered = {d.our_version(version) for d in theirs for version in d.versions.numbers()}
        if set(schema_of(cls).versions.numbers()) != covered:
            wrong.append(f"{name}: ours {schema_of(cls).versions}, theirs {sorted(covered)}")
    assert wrong == []


@pytest.mark.parametrize("field", ["name", "type", "nullable", "tag", "default", "order", "missing"])
def test_the_comparison_finds_each_kind_of_difference(field: str) -> None:
    definition = definitions("4.1.0")["FetchRequest"]
    first, *others = definition.fields_at(12)
    changes: dict[str, tuple[FieldAt, ...]] = {
        "name": (first._replace(name="other"), *others),
        "type": (first._replace(type="bytes"), *others),
        "nullable": (first._replace(nullable=False), *others),
        "tag": (first._replace(tag=5), *others),
        "default": (first._replace(default="x"), *others),
        "order": (*others, first),
        "missing": (*others, first, first._replace(name="another")),
    }
    ours = fields_of(OURS["FetchRequest"])
    assert compare_fields("", definition.fields_at(12), ours, 12, flexible=True, newest=True) == []
    assert compare_fields("", changes[field], ours, 12, flexible=True, newest=True) != []


def compare(definition: Definition, cls: type[Message], *, newest: bool) -> list[str]:
    """Return the differences, one per line. An older release may lack tagged fields of a newer one."""
    differences = []
    for version in definition.versions.numbers():
        ours = definition.our_version(version)
        where = f"{cls.__name__} v{ours}"
        if ours not in schema_of(cls).versions:
            differences.append(f"MISSING {where}")
            continue
        flexible = version in definition.flexible
        if flexible != (ours in schema_of(cls).flexible):
            differences.append(f"{where}: flexible should be {flexible}")
        theirs = definition.fields_at(version)
        differences += compare_fields(where, theirs, fields_of(cls), ours, flexible=flexible, newest=newest)
    return differences


def compare_fields(
    where: str,
    theirs: tuple[FieldAt, ...],
    all_ours: tuple[FieldSpec, ...],
    version: int,
    *,
    flexible: bool,
    newest: bool,
) -> list[str]:
    expected = {field.name: field for field in theirs}
    ours = [spec for spec in all_ours if version in spec.versions]
    if not newest:
        ours = [spec for spec in ours if spec.tag is None or spec.name in expected]
    differences = [f"MISSING {where}.{name}" for name in expected if name not in {spec.name for spec in ours}]
    if not differences and [spec.name for spec in ours] != list(expected):
        differences.append(f"{where}: fields are {[spec.name for spec in ours]}, should be {list(expected)}")
    for spec in ours:
        if spec.name not in expected:
            continue
        their = expected[spec.name]
        path = f"{where}.{spec.name}"
        is_array = isinstance(spec.type, ArrayOf)
        element = spec.type.element if isinstance(spec.type, ArrayOf) else spec.type
        pairs = {
            "array": (is_array, their.is_array),
            "nullable": (version in spec.nullable, their.nullable),
            "tag": (spec.tag if flexible else None, their.tag),
            "default": (_default(spec), their.default),
        }
        if isinstance(element, Wire):
            pairs["type"] = (element.name, their.type)
        elif isinstance(element, type) and not element.__name__.endswith(their.type):
            pairs["type"] = (element.__name__, their.type)
        differences += [
            f"{path}: {what} is {a!r}, should be {b!r}" for what, (a, b) in pairs.items() if a != b
        ]
        if isinstance(element, type):
            differences += compare_fields(
                path, their.children, fields_of(element), version, flexible=flexible, newest=newest
            )
    return differences


def _default(spec: FieldSpec) -> object:
    if spec.factory is not None or hasattr(type(spec.default), "__fields__"):
        return "struct"
    if isinstance(spec.type, Wire) and spec.type.name == "uuid":
        return "zero" if spec.default.int == 0 else spec.default
    return spec.default
