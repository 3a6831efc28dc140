"""The APIs that a broker of a cluster serves beside those of a broker that is alone; genuine brokers with
ZooKeeper advertise them, too. A table as in `handlers/__init__.py`.
"""

from __future__ import annotations

from kafka_compat.handlers import SERVED
from kafka_compat.protocol.api_keys import ApiKey

CLUSTER_SERVED: dict[ApiKey, tuple[int, int]] = {
    **SERVED,
    ApiKey.LEADER_AND_ISR: (0, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.CONTROLLED_SHUTDOWN: (0, 3),
    ApiKey.ALTER_PARTITION: (0, 3),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0),
}
