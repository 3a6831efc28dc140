"""Which Kafka a broker is like, against the table that kafka-python has of each release's APIs."""

from __future__ import annotations

from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from kafka_compat.handlers.served import SERVED
from kafka_compat.status.observer import is_kraft, newest_release


def test_each_release_is_recognized_by_its_apis() -> None:
    found: dict[str, list[str]] = {}
    for release, versions in BROKER_API_VERSIONS.items():
        asked = {int(key): (low, high) for key, (low, high) in versions.items()}
        found.setdefault(newest_release(asked), []).append(".".join(map(str, release)))
    older = found.pop("<2.3")
    assert all(tuple(map(int, each.split("."))) < (2, 3) for each in older)
    for told, releases in found.items():
        first, _, last = told.rstrip("+").partition("-")
        assert releases[0] == first, told
        assert told.endswith("+") or releases[-1] == (last or first), told


def test_this_broker_is_recognized_as_the_newest_release_but_not_as_kraft() -> None:
    versions = {int(key): found for key, found in SERVED.items()}
    assert (newest_release(versions), is_kraft(versions)) == ("4.1+", False)
