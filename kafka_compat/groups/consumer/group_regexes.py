"""The regular expressions to which the members of one consumer group subscribe (KIP-848).

They are resolved in the background, all those of a group together: when one is new, when topics were created,
and when group.consumer.regex.refresh.interval.ms have passed, but at most every ten seconds.
"""

from collections.abc import Mapping
from typing import Final

from kafka_compat.coordinator_runtime.machine import Now, Outbox
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat
from kafka_compat.groups.consumer.member import Member
from kafka_compat.groups.consumer.records import ConsumerRecord, RegexRecord, ResolvedRegex
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes, problem
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.long_work import Steps

_INTERVAL_MS: Final = 10_000
"""Time between two resolutions of a group's regular expressions, in ms."""


class GroupRegexes:
    """The regular expressions of one group. `state` contains them and the topics that match them."""

    __slots__ = ("_common", "_group_id", "_is_resolving", "_outbox", "_resolved_version", "_state")

    def __init__(self, group_id: str, state: GroupState, common: ConsumerGroups, outbox: Outbox) -> None:
        self._group_id = group_id
        self._state = state
        self._common = common
        self._outbox = outbox
        self._is_resolving = False
        """Whether the regular expressions are being resolved."""
        self._resolved_version = -1
        """The metadata version for which this coordinator resolved the regular expressions."""

    def change(self, former: Member, updated: Member, records: list[ConsumerRecord]) -> bool:
        """Change a member's regular expression. Return whether the member now subscribes to other topics, as
        far as they are known. Raises KafkaError (INVALID_REGULAR_EXPRESSION).
        """
        old, new = former.topic_regex, updated.topic_regex
        if old and old not in self._state.subscribed_regexes([former], updated):
            records.append(RegexRecord(self._group_id, old, None))
        if not new:
            return True
        if new not in self._state.regex_subscribers:
            reason = problem(new)
            if reason is not None:
                raise KafkaError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"The regular expression {new!r} is not valid: {reason}",
                )
            return False
        return new in self._state.regexes

    def resolve_if_due(self, former: Member, updated: Member, request: Heartbeat, now: Now) -> None:
        """Begin to resolve the regular expressions, if it is time."""
        if self._is_resolving or not (self._state.regex_subscribers or updated.topic_regex):
            return
        regexes = self._state.subscribed_regexes([former], updated)
        known = self._state.regexes.current
        resolved_ms = max((each.timestamp_ms for each in known.values()), default=0)
        age_ms = now.wall_ms - resolved_ms
        if not regexes or 0 <= age_ms < _INTERVAL_MS:
            return
        if (
            regexes != known.keys()
            or self._resolved_version < self._common.topics.new_topics_version
            or not 0 <= age_ms < self._common.limits.regex_refresh_interval_ms
        ):
            self._is_resolving = True
            self._outbox.perform(ResolveRegexes(tuple(sorted(regexes)), request.may_describe))

    def resolved(
        self,
        found: Mapping[str, frozenset[str]],
        version: int,
        now: Now,
        records: list[ConsumerRecord],
    ) -> Steps[tuple[set[str], bool]]:
        """Add the records of the topics that match. Return all topics to which members subscribe, and whether
        the topics of a regular expression have changed.
        """
        self._is_resolving = False
        self._resolved_version = version
        state = self._state
        names = set(state.subscribers)
        has_new_topics = False
        for regex in state.regex_subscribers:
            known = state.matched(regex)
            topics = found.get(regex, known)
            if regex in found:
                resolved = ResolvedRegex(topics, version, now.wall_ms)
                records.append(RegexRecord(self._group_id, regex, resolved))
                has_new_topics |= topics != known
            names |= topics
            yield None
        return names, has_new_topics
