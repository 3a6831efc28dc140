"""APIs that require a feature level fail with UNSUPPORTED_VERSION at lower levels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.feature_gates import has_level, require_level
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.features import GROUP_VERSION


def test_an_api_is_available_only_at_the_required_level() -> None:
    metadata = MetadataCache("cluster", 1)
    ctx: Any = SimpleNamespace(services=SimpleNamespace(metadata=metadata))
    assert not has_level(ctx, GROUP_VERSION)
    for level in (0, 1):
        change = metadata.change()
        change.set_features(level, {GROUP_VERSION: level})
        change.publish()
        assert has_level(ctx, GROUP_VERSION) is (level == 1)
    require_level(ctx, GROUP_VERSION, 1)
    with pytest.raises(KafkaError) as failed:
        require_level(ctx, GROUP_VERSION, 2)
    assert failed.value.code == ErrorCode.UNSUPPORTED_VERSION
