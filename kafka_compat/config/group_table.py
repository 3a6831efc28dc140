"""All group settings that this broker supports, with the defaults of Apache Kafka 4.4, in the columns of
topic_table.py.
"""

GROUP_TABLE = """
consumer.session.timeout.ms int 45000 medium works [1,...] # Time in milliseconds without a heartbeat after which a member is removed from its consumer group.
consumer.heartbeat.interval.ms int 5000 medium works [1,...] # Interval in milliseconds at which the members of a consumer group send heartbeats.
consumer.assignment.interval.ms int 1000 medium works [0,...] # Minimum time in milliseconds between two assignments of a consumer group. 0: each change is assigned at once.
"""  # noqa: E501
