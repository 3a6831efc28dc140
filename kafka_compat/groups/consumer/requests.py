"""Requests of the consumer protocol (KIP-848) to the groups of one broker."""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, check, rejected
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes, are_supported, resolved
from kafka_compat.groups.consumer.state import View

if TYPE_CHECKING:
    from kafka_compat.groups.hosted_groups import HostedGroups, Running

log = logging.getLogger(__name__)


class ConsumerGroupRequests:
    """Requests of the consumer protocol."""

    def __init__(self, hosted: "HostedGroups", common: ConsumerGroups) -> None:
        self._hosted = hosted
        self._common = common
        self._running = hosted.running
        self._runtime = hosted.runtime
        self._now = hosted.now
        self._has_told_of_regexes = False

    def heartbeat(
        self, group_id: str, request: Heartbeat, respond: Callable[[HeartbeatResult], None]
    ) -> None:
        """Process a ConsumerGroupHeartbeat request (KIP-848)."""
        try:
            check(group_id, request, self._common.limits.assignors)
        except KafkaError as invalid:
            respond(rejected(invalid))
            return
        if request.topic_regex and not self._has_told_of_regexes and not are_supported():
            # Log this, because clients such as librdkafka do not show the message of the response.
            log.warning(
                "Rejected a subscription to the regular expression %r in group %s: the package google-re2 is "
                "missing. Install kafka-compat[regex], and restart the broker",
                request.topic_regex,
                group_id,
            )
            self._has_told_of_regexes = True
        running, error = self._hosted.find_or_host(
            group_id, ErrorCode.GROUP_ID_NOT_FOUND, is_created=request.member_epoch == JOIN_EPOCH
        )
        if error or running is None:
            message = (
                f"The group {group_id} does not exist" if error is ErrorCode.GROUP_ID_NOT_FOUND else None
            )
            respond(HeartbeatResult(error, message))
        else:
            machine = running.machine
            self._hosted.long_events.process(
                running,
                lambda: machine.consumer_heartbeat(request, respond, self._now()),
                lambda: self.heartbeat(group_id, request, respond),
                lambda: respond(HeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR)),
            )

    def resolve_regexes(self, running: "Running", request: ResolveRegexes) -> None:
        """Resolve the regular expressions of a consumer group in the background."""
        topics = self._common.topics

        def resolving() -> Iterator[int]:
            version = topics.version
            found = yield from resolved(request, topics.names)
            self._store_topics(running, found, version)

        self._runtime.run_cooperatively(resolving())

    def _store_topics(self, running: "Running", found: dict[str, frozenset[str]], version: int) -> None:
        """Store the topics that match regular expressions, unless this broker has lost the group."""
        if self._running.get(running.key) is running:
            self._hosted.long_events.process(
                running,
                lambda: running.machine.regexes_resolved(found, version, self._now()),
                lambda: self._store_topics(running, found, version),
                lambda: None,
            )

    def describe(self, group_id: str) -> tuple[ErrorCode, View | None]:
        """Return an error code, and the committed state of a consumer group if there is no error."""
        return self._hosted.view(group_id, lambda group: group.consumer_view)

    @property
    def default_assignor(self) -> str:
        """The assignor of consumer groups whose members have no preference."""
        return self._common.limits.assignors[0]
