"""CreateTopics (API key 19): create topics."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class CreatableReplicaAssignment:
    """The replicas of one partition, its preferred leader first."""

    partition_index: s.Int32 = 0
    broker_ids: list[s.Int32] = []


@s.struct
class CreatableTopicConfig:
    name: s.String = ""
    value: s.NullableString = ""


@s.struct
class CreatableTopic:
    """A topic to create. It has either a partition count and a replication factor, where -1 means the
    broker's default (version 4 and later, KIP-464), or assignments, in which case both numbers are -1.
    """

    name: s.String = ""
    num_partitions: s.Int32 = 0
    replication_factor: s.Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@request(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    """With `validate_only` (version 1 and later), the request is checked, and no topics are created."""

    topics: list[CreatableTopic] = []
    timeout_ms: s.Int32 = 60000
    validate_only: s.Bool = s.field("1+", default=False)


@s.struct
class CreatableTopicConfigs:
    """A setting of the new topic. config_source has the same values as in DescribeConfigs."""

    name: s.String = s.field("5+", default="")
    value: s.NullableString = s.field("5+", default="")
    read_only: s.Bool = s.field("5+", default=False)
    config_source: s.Int8 = s.field("5+", default=-1)
    is_sensitive: s.Bool = s.field("5+", default=False)


@s.struct
class CreatableTopicResult:
    """The result for one topic. Version 5 adds the settings (KIP-525), and version 7 the topic ID."""

    name: s.String = ""
    topic_id: s.Uuid = s.field("7+", default=ZERO_UUID)
    error_code: s.Int16 = 0
    error_message: s.NullableString = s.field("1+", default="")
    topic_config_error_code: s.Int16 = s.field("5+", default=0, tag=0)
    num_partitions: s.Int32 = s.field("5+", default=-1)
    replication_factor: s.Int16 = s.field("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = s.field("5+", default=[])


@response(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: s.Int32 = s.field("2+", default=0)
    topics: list[CreatableTopicResult] = []
