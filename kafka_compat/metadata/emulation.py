"""Emulation of an older Kafka version (kafka.compat.emulated.version): the APIs, their versions, and the
features that the broker reports to clients and accepts from them.

The setting applies to all listeners. If there are several, the inter-broker listener is excluded, because
brokers and the fixtures for tests need the newest versions.
"""

from typing import Final

from kafka_compat.config import BrokerConfig

SETTING: Final = "kafka.compat.emulated.version"
METADATA_VERSION: Final = "metadata.version"
"""The feature that Kafka 4 always finalizes, at its highest level in a new cluster."""
_LISTS_VERSIONS: Final = (2, 4)
"""The first version whose response to an unknown version of ApiVersions contains the known ones (KIP-511)."""


class Emulation:
    """What a broker of one Kafka version reports and accepts."""

    def __init__(self, version: str, exempt_listener: str | None = None) -> None:
        """Clients of `exempt_listener` are not affected. Raises KeyError for an unknown version."""
        from kafka_compat.protocol.kafka_versions import VERSIONS

        self._exempt_listener = exempt_listener
        self.apis: dict[int, tuple[int, int]] = {}
        """Maps the keys of the reported APIs to their lowest and highest versions."""
        self.features: dict[str, tuple[int, int]] = {}
        """Maps the supported features to their lowest and highest levels."""
        for word in VERSIONS[version].split():
            name, _, versions = word.partition(":")
            low, _, high = versions.partition("-")
            if name.isdecimal():
                self.apis[int(name)] = int(low), int(high)
            else:
                self.features[name] = int(low), int(high)
        major, minor = version.split(".")[:2]
        self.lists_versions = (int(major), int(minor)) >= _LISTS_VERSIONS
        """Whether the response to an unknown version of ApiVersions contains the known ones."""

    def applies(self, listener: str) -> bool:
        """Return whether clients of a listener are affected."""
        return listener != self._exempt_listener

    def allows(self, listener: str, key: int, version: int) -> bool:
        """Return whether a request on a listener has a version that the emulated broker accepts."""
        if not self.applies(listener):
            return True
        low, high = self.apis.get(key, (0, -1))
        return low <= version <= high

    def level(self, feature: str, level: int) -> int:
        """Return the highest level of a feature, up to `level`, that the emulated broker supports."""
        return min(level, self.features.get(feature, (0, 0))[1])


def emulation_of(config: BrokerConfig) -> Emulation | None:
    """Return the emulation that the settings define, or None."""
    version = config.str(SETTING)
    if not version:
        return None
    return Emulation(version, config.inter_broker_listener if len(config.listeners) > 1 else None)
