"""What the opening of a metadata store tells a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafka_compat.coordination.store.metadata_store import MetadataStore


class OpenedStore(NamedTuple):
    """A metadata store that can be read and written."""

    store: MetadataStore
    cluster_id: str
    may_lack_topics: bool
    """Whether it is new, or has lost its last entries: topics of the log directories are adopted."""
