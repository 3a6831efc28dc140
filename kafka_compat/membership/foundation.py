"""What a broker of either kind is made of: what it stands on, and what its membership adds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.errors import KafkaError

if TYPE_CHECKING:
    from kafka_compat.clock import Clock
    from kafka_compat.config import BrokerConfig, TopicToCreate
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.long_work import LongWork
    from kafka_compat.membership.entity_changes import EntityChanges
    from kafka_compat.membership.topic_settings import TopicSettings
    from kafka_compat.membership.topics import Topics
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.config_manager import ConfigManager
    from kafka_compat.metadata.producer_ids import ProducerIds
    from kafka_compat.metadata.topic_overrides import TopicOverrides
    from kafka_compat.replication.counts import Counts
    from kafka_compat.replication.flusher import Flusher
    from kafka_compat.replication.leaderships import Leaderships
    from kafka_compat.replication.listeners import CallSoon
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.security.broker_security import BrokerSecurity
    from kafka_compat.storage.directories.log_dirs import LogDirs

log = logging.getLogger(__name__)


async def create_wanted(topics: Topics, wanted: TopicToCreate) -> None:
    """Make a topic of KAFKA_CREATE_TOPICS when there is none of its name; a failure is logged."""
    configs = {"cleanup.policy": wanted.cleanup_policy} if wanted.cleanup_policy else {}
    try:
        await topics.ensure(wanted.name, wanted.partitions, wanted.replication_factor, configs)
    except KafkaError as error:
        log.warning("cannot create topic %s: %s", wanted.name, error.message or error.code.name)


class Opened(NamedTuple):
    """A metadata store that can be read and written."""

    store: MetadataStore
    cluster_id: str
    may_lack_topics: bool
    """Whether it is new, or has lost its last entries: topics that lie in the data folders are adopted."""


@dataclass(slots=True, eq=False, repr=False)
class Foundation:
    """What every broker stands on, however it belongs. Never changed: `frozen` costs 0.5 ms at the start."""

    config: BrokerConfig
    clock: Clock
    store: MetadataStore
    metadata: MetadataCache
    log_dirs: LogDirs
    flusher: Flusher
    configs: ConfigManager
    topic_overrides: TopicOverrides
    leaderships: Leaderships
    long_work: LongWork
    call_soon: CallSoon
    """Calls something in the next turn of the loop."""
    end_broker: Callable[[], None]
    """To be called when the broker cannot go on."""
    entity_changes: EntityChanges
    broker_security: Callable[[], BrokerSecurity]
    """How it dials other brokers. Raises StartupError for settings that cannot be."""
    counts: Counts
    """What its partitions and fetches count."""


class Made(NamedTuple):
    """What depends on how a broker belongs."""

    replicas: ReplicaManager
    topics: Topics
    topic_settings: TopicSettings
    producer_ids: ProducerIds
