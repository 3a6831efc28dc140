"""All group settings that this broker supports, with the defaults of Apache Kafka 4.4, in the columns of
topic_table.py.
"""

GROUP_TABLE = """
consumer.session.timeout.ms int 45000 medium works [1,...] # Time in milliseconds without a heartbeat after which a member is removed from its consumer group.
consumer.heartbeat.interval.ms int 5000 medium works [1,...] # Interval in milliseconds at which the members of a consumer group send heartbeats.
consumer.assignment.interval.ms int 1000 medium works [0,...] # Minimum time in milliseconds between two assignments of a consumer group. 0: each change is assigned at once.
share.session.timeout.ms int 45000 medium works [1,...] # Time in milliseconds without a heartbeat after which a member is removed from its share group.
share.heartbeat.interval.ms int 5000 medium works [1,...] # Interval in milliseconds at which the members of a share group send heartbeats.
share.record.lock.duration.ms int 30000 medium works [1000,...] # Time in milliseconds after which an acquired record becomes available again.
share.delivery.count.limit int 5 medium works [2,...] # Maximum number of deliveries of a record. After the last one, the record is archived.
share.partition.max.record.locks int 2000 medium works [100,...] # Maximum number of records in flight in a share-partition.
share.auto.offset.reset string latest medium works auto-offset-reset # Where a share group starts to read a partition: at its earliest or latest offset, or by_duration:PnDTnHnMn.nS before now.
share.isolation.level string read_uncommitted medium works one-of:read_committed,read_uncommitted # Whether a share group reads records of transactions only after these were committed (read_committed).
share.renew.acknowledge.enable boolean true medium works # Whether members may extend the lock of an acquired record (KIP-1222).
share.assignment.interval.ms int 1000 medium works [0,...] # Minimum time in milliseconds between two assignments of a share group. 0: each change is assigned at once.
errors.deadletterqueue.topic.name string "" medium works # Topic to which a share group writes records that cannot be processed (KIP-1191). Empty: none.
errors.deadletterqueue.copy.record.enable boolean false medium works # Whether records in the dead letter topic contain the key and the value of the original record.
"""  # noqa: E501
