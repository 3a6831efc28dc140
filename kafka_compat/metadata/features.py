"""Features of a cluster that have levels (KIP-584): the supported levels, the defaults, and the rules for
changes, which are those of Apache Kafka 4.4. No I/O.

A feature's level is the level that an operator has set, or else a default, which kafka.compat.group.version,
kafka.compat.share.version and kafka.compat.transaction.version set. Without these settings: on a standalone
broker and in clusters with the embedded store, the default is the highest level, because no other software
can join. With ZooKeeper, it is 0, because Apache Kafka 3.9 brokers may be members.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata import emulation

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig

GROUP_VERSION: Final = "group.version"
"""1: groups of the consumer protocol (KIP-848)."""
SHARE_VERSION: Final = "share.version"
"""1: share groups (KIP-932). 2: share groups may have dead letter queues (KIP-1191)."""
TRANSACTION_VERSION: Final = "transaction.version"
"""1: the coordinator writes records in the flexible format. 2: clients use an epoch for each transaction
(KIP-890).
"""

SUPPORTED: Final[Mapping[str, int]] = {GROUP_VERSION: 1, TRANSACTION_VERSION: 2, SHARE_VERSION: 2}
"""Maps each feature that this broker supports to its highest level. At level 0, a feature is disabled."""

_SETTINGS: Final[Mapping[str, str]] = {
    GROUP_VERSION: "kafka.compat.group.version",
    TRANSACTION_VERSION: "kafka.compat.transaction.version",
    SHARE_VERSION: "kafka.compat.share.version",
}
"""Maps features to the settings of their default levels."""

_UPGRADE: Final = 1
_UPDATE_TYPES: Final = (_UPGRADE, 2, 3)


class FeatureUpdate(NamedTuple):
    """A requested level of a feature. `update_type` is 1 for an upgrade, 2 or 3 for a downgrade (the second
    may lose metadata).
    """

    feature: str
    level: int
    update_type: int


def effective_levels(config: "BrokerConfig", stored: Mapping[str, int]) -> dict[str, int]:
    """Return the level of each supported feature. `stored` contains the levels that an operator has set."""
    levels = dict.fromkeys(SUPPORTED, 0) if config.str("zookeeper.connect") else dict(SUPPORTED)
    for name, setting in _SETTINGS.items():
        configured = config.get(setting)
        if isinstance(configured, int):
            levels[name] = configured
    levels |= {name: level for name, level in stored.items() if name in SUPPORTED}
    if config.str(emulation.SETTING):
        emulated = emulation.emulation_of(config)
        assert emulated is not None
        levels = {name: emulated.level(name, level) for name, level in levels.items()}
    return levels


def unsupported_levels(stored: Mapping[str, int]) -> dict[str, int]:
    """Return the levels that this broker does not support."""
    return {name: level for name, level in stored.items() if level > SUPPORTED.get(name, 0)}


def check_updates(
    levels: Mapping[str, int],
    updates: Sequence[FeatureUpdate],
    broker_id: int,
    peers: Mapping[int, Mapping[str, int]],
) -> None:
    """Raise KafkaError if any update is invalid. `levels` are the current levels, and `peers` maps the IDs of
    the other brokers to the highest levels that they support.
    """
    for update in updates:
        problem = _problem(levels, update, broker_id, peers)
        if problem is not None:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: Invalid update "
                f"version {update.level} for feature {update.feature}. {problem}",
            )


def _problem(
    levels: Mapping[str, int],
    update: FeatureUpdate,
    broker_id: int,
    peers: Mapping[int, Mapping[str, int]],
) -> str | None:
    feature, level, update_type = update
    if update_type not in _UPDATE_TYPES:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if level == 0 and feature not in SUPPORTED:
        return f"Feature {feature} not found."
    for whose, supported in (
        (f"Local controller {broker_id}", SUPPORTED),
        *((f"Broker {each}", peers[each]) for each in sorted(peers)),
    ):
        if level > supported.get(feature, 0):
            highest = supported.get(feature)
            return (
                f"{whose} does not support this feature."
                if highest is None
                else f"{whose} only supports versions 0-{highest}"
            )
    current = levels[feature]
    if level < current and update_type == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and update_type != _UPGRADE:
        return "Can't downgrade to a newer version."
    return None
