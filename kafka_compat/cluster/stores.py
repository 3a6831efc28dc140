"""What a membership needs of its metadata store. `OwnStore` (standalone) and `SharedStore` (cluster) are all
that depends on whether a broker is standalone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from kafka_compat.cluster.own_store import OwnStore
    from kafka_compat.cluster.shared_store import SharedStore
    from kafka_compat.coordination.store.metadata_store import MetadataStore

    Store: TypeAlias = OwnStore | SharedStore


class OpenedStore(NamedTuple):
    """A metadata store that can be read and written."""

    store: MetadataStore
    cluster_id: str
    may_lack_topics: bool
    """Whether it is new, or has lost its last entries: topics of the log directories are adopted."""
