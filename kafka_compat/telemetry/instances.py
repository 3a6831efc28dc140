"""The client instances known to a broker, and the requests that each may send (KIP-714; Kafka's
ClientMetricsManager).

Rules
1. An instance becomes known with its first request. Any ID is accepted, since another broker may have
   assigned it. The instance is removed when its connection is closed, or after three of its intervals (at
   least a minute) without a request. If there are too many instances, the one that was silent longest is
   removed.
2. An instance's subscription is computed when it becomes known, and again after subscriptions have changed.
   The instance may then request its subscription immediately, to learn of the change.
3. An instance may request its subscription once per interval, and immediately after a push that failed
   because of an outdated subscription or compression.
4. An instance may push once per interval, and immediately after a request for its subscription. An early
   request after a failed push (rule 3) does not permit an early push. The last push is allowed at any time.
5. After the last push, further pushes are rejected.

No I/O: callers pass the time in milliseconds of a monotonic clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.telemetry.subscriptions import Client, Subscription, Wanted, wanted

INSTANCES_MAX: Final = 16384
_FORGOTTEN_AFTER_MIN_MS: Final = 60_000
_INTERVALS: Final = 3

NOBODY: Final = UUID(int=0)
_RESERVED: Final = (NOBODY, UUID(int=1))
_NEVER: Final = -(1 << 62)
_MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_COMPRESSIONS: Final = frozenset(CompressionType)


class Push(NamedTuple):
    """The fields of a PushTelemetry request other than the metrics."""

    subscription_id: int
    terminating: bool
    compression_type: int
    size_bytes: int


class ClientInstance:
    """The state of one client instance."""

    __slots__ = (
        "_asked_ms",
        "_pushed_ms",
        "forgotten_ms",
        "is_terminating",
        "last_error",
        "version",
        "wanted",
    )

    def __init__(self, asked_for: Wanted, version: int) -> None:
        self.wanted = asked_for
        self.version = version
        """The version of the subscriptions from which the instance's subscription was computed."""
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.forgotten_ms = 0
        """Time at which the instance is removed, unless it sends a request earlier."""
        self._asked_ms = self._pushed_ms = _NEVER

    @property
    def shown_for_ms(self) -> int:
        """Time in milliseconds that pushed metrics remain current."""
        return max(_FORGOTTEN_AFTER_MIN_MS, _INTERVALS * self.wanted.interval_ms)

    def may_ask(self, now_ms: int) -> bool:
        """Return whether a subscription request is allowed (rule 3). Early requests are not recorded."""
        if now_ms - max(self._asked_ms, self._pushed_ms) >= self.wanted.interval_ms:
            self._asked_ms = now_ms
            return True
        return self.last_error in _MAY_ASK_AGAIN

    def may_push(self, now_ms: int) -> bool:
        """Return whether a push is due (rule 4), and record it if so. The caller exempts the last push."""
        due = now_ms - self._pushed_ms >= self.wanted.interval_ms
        if self._asked_ms > self._pushed_ms or due:
            self._pushed_ms = now_ms
            return True
        return False


class ClientInstances:
    def __init__(
        self, new_id: Callable[[], UUID], max_bytes: int, instances_max: int = INSTANCES_MAX
    ) -> None:
        """`max_bytes` is the maximum size of a push before decompression."""
        self._new_id = new_id
        self._max_bytes = max_bytes
        self._instances_max = instances_max
        self._known: OrderedDict[UUID, ClientInstance] = OrderedDict()
        """Instances in the order of their latest requests, the oldest first."""
        self._subscriptions: Collection[Subscription] = ()
        self._version = 0

    def __len__(self) -> int:
        return len(self._known)

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        """Replace all subscriptions."""
        self._subscriptions = subscriptions
        self._version += 1

    def ask(self, instance_id: UUID, client: Client, now_ms: int) -> tuple[UUID, ClientInstance | ErrorCode]:
        """Process GetTelemetrySubscriptions. Return the ID, new if NOBODY, and the instance or an error."""
        if instance_id == NOBODY:
            instance_id = self._new_id()
            while instance_id in self._known or instance_id in _RESERVED:
                instance_id = self._new_id()
        known = self._heard_of(instance_id, client, now_ms)
        if not known.may_ask(now_ms):
            return instance_id, ErrorCode.THROTTLING_QUOTA_EXCEEDED
        known.last_error = ErrorCode.NONE
        return instance_id, known

    def push(
        self, instance_id: UUID, client: Client, push: Push, now_ms: int
    ) -> tuple[ClientInstance | None, ErrorCode]:
        """Process PushTelemetry. Return the instance (None for a reserved ID) and the error code."""
        if instance_id in _RESERVED:
            return None, ErrorCode.INVALID_REQUEST
        known = self._heard_of(instance_id, client, now_ms)
        known.last_error = self._judged(known, push, now_ms)
        known.is_terminating = push.terminating
        return known, known.last_error

    def _judged(self, known: ClientInstance, push: Push, now_ms: int) -> ErrorCode:
        if known.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not known.may_push(now_ms) and not push.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != known.wanted.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if push.compression_type not in _COMPRESSIONS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if push.size_bytes > self._max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def forget(self, instance_id: UUID) -> None:
        """Remove an instance whose connection was closed."""
        self._known.pop(instance_id, None)

    def _heard_of(self, instance_id: UUID, client: Client, now_ms: int) -> ClientInstance:
        self._forget_silent(now_ms)
        known = self._known.get(instance_id)
        if known is None or known.version < self._version:
            asked_for = wanted(self._subscriptions, instance_id, client)
            known = self._known[instance_id] = ClientInstance(asked_for, self._version)
            if len(self._known) > self._instances_max:
                self._known.popitem(last=False)
        known.forgotten_ms = now_ms + known.shown_for_ms
        self._known.move_to_end(instance_id)
        return known

    def _forget_silent(self, now_ms: int) -> None:
        for _ in range(2):
            if not self._known:
                return
            instance_id, oldest = next(iter(self._known.items()))
            if oldest.forgotten_ms > now_ms:
                return
            del self._known[instance_id]
