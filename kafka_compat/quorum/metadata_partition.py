"""The only partition that the quorum replicates: `__cluster_metadata-0`."""

from typing import Final
from uuid import UUID

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = UUID(int=1)
PARTITION: Final = 0
