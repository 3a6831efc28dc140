"""Topic names: validity, collisions, and the names of internal topics."""

import re
from typing import Final

from kafka_compat.errors import ErrorCode, KafkaError

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(topic: str) -> bool:
    """Return whether a topic is internal: read-only for clients, and marked as internal in Metadata."""
    return topic in INTERNAL_TOPICS


def check_topic_name(topic: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) if Kafka does not allow this topic name."""
    if not topic:
        problem = "the empty string is not allowed"
    elif topic in (".", ".."):
        problem = f"'{topic}' is not allowed"
    elif len(topic) > NAME_LENGTH_MAX:
        problem = f"the length of '{topic}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not _LEGAL.fullmatch(topic):
        problem = (
            f"'{topic}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def collision_key(topic: str) -> str:
    """Return the name with '_' for '.', as in metric names. No two topics may have the same result."""
    return topic.replace(".", "_")


def may_collide(topic: str) -> bool:
    """Return whether a different name could have the same `collision_key`."""
    return "." in topic or "_" in topic
