"""Random messages encoded and decoded by Kafka's own classes and by ours, with the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.protocol.codec import decode, encode
from kafka_compat.protocol.schema import Message
from tests.oracle.message_oracle import MessageOracle
from tests.protocol.definitions import RELEASES, Definition, definitions
from tests.protocol.kafka_json import as_kafka_holds_it, blank_records, to_json
from tests.protocol.known_messages import message_classes
from tests.protocol.random_messages import RandomMessages
from tests.support.campaign import enabled, rounds

OURS = {cls.__name__: cls for cls in message_classes()}


@pytest.fixture(scope="module", params=RELEASES)
def oracle(request: pytest.FixtureRequest) -> Iterator[tuple[str, MessageOracle]]:
    with MessageOracle(request.param) as running:
        yield request.param, running


@pytest.mark.timeout(1800)
def test_encoded_bytes_match_kafkas(oracle: tuple[str, MessageOracle]) -> None:
    """Kafka decodes our bytes to our values, and encodes our values to our bytes."""
    release, kafka = oracle
    pairs = [
        (definition, OURS[definition.name], version)
        for definition in definitions(release).values()
        if definition.name in OURS
        for version in definition.versions.numbers()
        if enabled() or release == RELEASES[-1] or not _is_the_same_in_the_newest(definition, version)
    ]
    is_newest = release == RELEASES[-1]
    messages = rounds(4 * len(pairs), 100_000 if is_newest else 52_000)
    differences: list[str] = []
    for number in range(messages):
        definition, cls, version = pairs[number % len(pairs)]
        differences += exchange(kafka, definition, cls, version, seed=f"{release}/{number}")
    print(f"Kafka {release}: {messages} messages of {len(pairs)} versions, {len(differences)} differences")
    assert differences[:10] == []


def _is_the_same_in_the_newest(definition: Definition, version: int) -> bool:
    """Return whether a version of a message is defined in the same way in the newest release. Normal runs
    compare it only with the classes of that release.
    """
    newest = definitions(RELEASES[-1]).get(definition.name)
    if newest is None or version not in newest.versions:
        return False
    is_flexible = [version in each.flexible for each in (newest, definition)]
    return is_flexible[0] == is_flexible[1] and newest.fields_at(version) == definition.fields_at(version)


def exchange(
    kafka: MessageOracle, definition: Definition, cls: type[Message], version: int, seed: str
) -> list[str]:
    """Return the differences for one random message, one per line."""
    fields = definition.fields_at(version)
    our_version = definition.our_version(version)
    message = as_kafka_holds_it(RandomMessages(seed).message(cls, our_version), fields)
    ours = encode(message, our_version)
    as_json = to_json(message, fields)
    where = f"{cls.__name__} v{our_version} (seed {seed})"
    answer = kafka.ask(definition.java_class, version, ours, as_json)
    differences = []
    if answer.json != blank_records(as_json):
        differences.append(f"{where}: Kafka reads {answer.json}, we wrote {as_json}")
    if answer.bytes != ours:
        differences.append(f"{where}: Kafka writes {answer.bytes.hex()}, we write {ours.hex()}")
    decoded = decode(cls, our_version, answer.bytes, exact=True)
    if to_json(decoded, fields) != as_json:
        differences.append(f"{where}: we read {decoded} from Kafka's bytes")
    return differences
