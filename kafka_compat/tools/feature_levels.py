"""What releases of Kafka agree on, in kafka-features' words: metadata.version and other features; no I/O."""

from __future__ import annotations

from typing import Final

from kafka_compat.tools.failure import Failure, illegal_argument

_FIRST: Final = 7
_RELEASES: Final = (
    "3.3-IV3",
    "3.4-IV0",
    "3.5-IV0",
    "3.5-IV1",
    "3.5-IV2",
    "3.6-IV0",
    "3.6-IV1",
    "3.6-IV2",
    "3.7-IV0",
    "3.7-IV1",
    "3.7-IV2",
    "3.7-IV3",
    "3.7-IV4",
    "3.8-IV0",
    "3.9-IV0",
    "4.0-IV0",
    "4.0-IV1",
    "4.0-IV2",
    "4.0-IV3",
    "4.1-IV0",
    "4.1-IV1",
    "4.2-IV0",
    "4.2-IV1",
    "4.3-IV0",
    "4.4-IV0",
)
"""The levels of metadata.version, from _FIRST on."""

PRODUCTION: Final = "4.3-IV0"
"""The last that Kafka 4.3 runs without being asked to try what is not ready."""

_FEATURES: Final = {
    "kraft.version": (1, 21),
    "transaction.version": (2, 24),
    "group.version": (1, 22),
    "eligible.leader.replicas.version": (1, 26),
    "share.version": (1, 28),
    "streams.version": (1, 29),
}
"""The highest level of each, and the level of metadata.version from which on a new cluster has it."""

_NEEDS: Final = {("eligible.leader.replicas.version", 1): {"metadata.version": 23}}


def name_of(level: int) -> str | None:
    """The release of a level of metadata.version; None for levels that there are not."""
    index = level - _FIRST
    return _RELEASES[index] if 0 <= index < len(_RELEASES) else None


def level_of(release: str) -> int:
    """The level of metadata.version of a release ("3.9-IV0", or "3.9" for its last). Raises Failure."""
    newest = _RELEASES.index(PRODUCTION)
    ready = _RELEASES[: newest + 1]
    last = {name.partition("-")[0]: name for name in ready}
    name = last.get(release, release)
    if name not in _RELEASES:
        known = ", ".join(_RELEASES)
        raise illegal_argument(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}"
        )
    return _FIRST + _RELEASES.index(name)


def of_release(level: int) -> dict[str, int]:
    """The levels of the other features that a new cluster has at a level of metadata.version."""
    return {name: highest if level >= since else 0 for name, (highest, since) in _FEATURES.items()}


def dependencies_of(name: str, level: int) -> dict[str, int]:
    """The levels of features that one needs. Raises Failure where there is no such feature, or level."""
    if name not in _FEATURES:
        raise Failure("org.apache.kafka.tools.TerseException", f"Unknown feature: {name}")
    if not 0 <= level <= _FEATURES[name][0]:
        raise illegal_argument(f"No feature:{name} with feature level {level}")
    return _NEEDS.get((name, level), {})
