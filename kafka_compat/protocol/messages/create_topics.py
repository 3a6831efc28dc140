"""CreateTopics (API key 19): create topics."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class CreatableReplicaAssignment:
    """The replicas of one partition, its preferred leader first."""

    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


@struct
class CreatableTopicConfig:
    """A setting of the topic."""

    name: String = ""
    value: NullableString = ""


@struct
class CreatableTopic:
    """Either counts, of which -1 is the default of the broker (since version 4, KIP-464), or assignments,
    with both counts -1.
    """

    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@request(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    """`validate_only` (version 1) checks and creates nothing."""

    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: Bool = field("1+", default=False)


@struct
class CreatableTopicConfigs:
    """A setting that the new topic has. config_source as in DescribeConfigs."""

    name: String = field("5+", default="")
    value: NullableString = field("5+", default="")
    read_only: Bool = field("5+", default=False)
    config_source: Int8 = field("5+", default=-1)
    is_sensitive: Bool = field("5+", default=False)


@struct
class CreatableTopicResult:
    """What became of one topic. Version 5 tells its partitions and settings (KIP-525), version 7 its id."""

    name: String = ""
    topic_id: Uuid = field("7+", default=ZERO_UUID)
    error_code: Int16 = 0
    error_message: NullableString = field("1+", default="")
    topic_config_error_code: Int16 = field("5+", default=0, tag=0)
    num_partitions: Int32 = field("5+", default=-1)
    replication_factor: Int16 = field("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = field("5+", default=[])


@response(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    """One result per topic."""

    throttle_time_ms: Int32 = field("2+", default=0)
    topics: list[CreatableTopicResult] = []
