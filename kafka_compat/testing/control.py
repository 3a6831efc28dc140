"""Python client for the control API of a broker under test."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote, urlencode

from kafka_compat.http_client import place, request

_PREFIX = "/control/v1"
_TIMEOUT_S = 60.0


class ControlFailed(RuntimeError):
    """Raised if an operation fails. The message comes from the broker."""


class Control:
    """Thread-safe client for a broker's control API. Methods raise ControlFailed if the request fails."""

    def __init__(self, url: str) -> None:
        self.url = url
        """URL of the broker's HTTP listener, for your own requests."""
        self._api = place(url).below(_PREFIX)

    def now_ms(self) -> int:
        """Return the broker's time of day, in milliseconds since the Unix epoch."""
        return int(self.ask("GET", "/time")["now_ms"])

    def advance(self, by: timedelta | float) -> int:
        """Advance the broker's time by a timedelta or a number of seconds, and return the new time of day in
        milliseconds. Before this call returns, retention is applied, and sessions and transactions expire.
        """
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return int(self.ask("POST", "/time", advance_ms=round(seconds * 1000))["now_ms"])

    def stand_still(self, *, still: bool = True) -> None:
        """Stop the broker's clock, so that only `advance` changes the time, until a call with `still=False`
        or a reset. The timers of coordinators, such as the rebalance delay, then fire only during `advance`.
        """
        self.ask("POST", "/time/stand", still=still)

    def events(self) -> list[dict[str, Any]]:
        """Return the events that occurred while time was advanced, in order: expired sessions and
        transactions, and deleted and compacted records. `after_ms` is the time since the call of `advance`.
        """
        return list(self.ask("GET", "/events"))

    @contextlib.contextmanager
    def record(self) -> Iterator[Callable[[], list[dict[str, Any]]]]:
        """Record clients' requests and the responses to them within a `with` block: `with control.record() as
        recorded`. In or after this block, `recorded()` returns the requests. Each has `api`, `version`,
        `client_id`, `connection` (a number), `at_ms`, and `request` and `response` with Kafka's field names
        in snake_case and bytes as base64; `kafka_compat.testing.replay` repeats the requests. Requests with
        passwords and keys, and fetched records, are omitted.
        """
        self.ask("POST", "/recording")
        kept: list[list[dict[str, Any]]] = []

        def recorded() -> list[dict[str, Any]]:
            return list(kept[0] if kept else self.ask("GET", "/recording"))

        try:
            yield recorded
        finally:
            kept.append(recorded())
            self.ask("DELETE", "/recording")

    def fault(self, *, api: str | None = None, **how: Any) -> "Fault":
        """Inject a fault into requests until the returned Fault, a context manager, is removed.

        Criteria: `api` ("Produce", "OffsetCommit", …), `client_id`, `broker`, `topic`, `partition`, `group`,
        `transactional_id`, `version`. Frequency: `skip`, `count`, `probability` with a `seed`. Effect:
        `error`, an error name (only for the given topic or partition, if any), `delay_ms`, `drop=True` (close
        the connection without handling the request), `lose_answer=True` (handle the request, but do not
        respond), `cut=True` (send half the response), or `corrupt=True` (flip bits of the response).
        """
        given = how if api is None else {"api": api, **how}
        return Fault(self, int(self.ask("POST", "/faults", **given)["number"]))

    def disks(self) -> list[dict[str, Any]]:
        """Return the log directories of all brokers, with their disk faults."""
        return list(self.ask("GET", "/disks"))

    def break_disks(self, *, broker: int | None = None, **how: Any) -> list[dict[str, Any]]:
        """Simulate a fault of all log directories, one broker's, or the directory `log_dir`: a full disk
        until `mend_disks` (`full=True`), a failed disk until the broker restarts (`failed=True`), or a delay
        of `slow_ms` for each write and sync. Return all log directories, with their faults.
        """
        given = how if broker is None else {"broker": broker, **how}
        return list(self.ask("POST", "/disks", **given))

    def mend_disks(self) -> list[dict[str, Any]]:
        """Remove all disk faults, and return all log directories. Offline directories stay offline."""
        return list(self.ask("DELETE", "/disks"))

    def fork(self, topic: str, name: str, *, groups: Iterable[str] | Literal["all"] = ()) -> str:
        """Create the topic `name` with the current contents of `topic`: its records with their offsets and
        timestamps, its settings, and optionally the offsets of groups. The records are not copied. The two
        topics are then independent. Return `name`.
        """
        wanted = True if groups == "all" else list(groups)
        self.ask("POST", f"/topics/{quote(topic, '')}/fork", name=name, groups=wanted)
        return name

    def brokers(self) -> list[dict[str, Any]]:
        """Return the brokers, each with its cut connections and whether it is paused."""
        return list(self.ask("GET", "/brokers"))

    def pause(self, broker: int) -> None:
        """Pause a broker until `resume`: it neither responds to requests nor sends any."""
        self.ask("POST", f"/brokers/{broker}/pause")

    def resume(self, broker: int) -> None:
        """Resume a paused broker."""
        self.ask("POST", f"/brokers/{broker}/resume")

    def cut(self, broker: int, other: int) -> None:
        """Cut the connections between two brokers of a cluster, until `mend` is called."""
        self.ask("POST", f"/brokers/{broker}/cut", **{"from": other})

    def cut_coordination(self, broker: int) -> None:
        """Cut a broker off from the cluster's metadata store (which replaces ZooKeeper). Its session expires
        after zookeeper.session.timeout.ms.
        """
        self.ask("POST", f"/brokers/{broker}/cut", coordination=True)

    def mend(self, broker: int) -> None:
        """Restore a broker's connections to all other brokers and to the metadata store."""
        self.ask("POST", f"/brokers/{broker}/mend")

    def expire_session(self, broker: int) -> None:
        """Expire a broker's metadata store session. Until it registers again, leadership may move."""
        self.ask("POST", f"/brokers/{broker}/expire")

    def snapshot(self, name: str) -> str:
        """Save the entire state of the brokers (topics, groups, transactions, settings, time) as a snapshot,
        replacing an earlier snapshot with this name. Return `name`.
        """
        self.ask("POST", "/snapshots", name=name)
        return name

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots."""
        return list(self.ask("GET", "/snapshots"))

    def restore(self, name: str) -> None:
        """Restore the state of a snapshot, and discard the current state. Clients are disconnected, and can
        reconnect and continue. Transactions that were open in the snapshot are open again.
        """
        self.ask("POST", f"/snapshots/{quote(name, '')}/restore")

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot."""
        self.ask("DELETE", f"/snapshots/{quote(name, '')}")

    def compact(self, topic: str) -> None:
        """Compact a topic up to its last record. Its cleanup.policy must include compact."""
        self._command(topic, "compact")

    def apply_retention(self, topic: str) -> None:
        """Delete records that have exceeded the topic's retention."""
        self._command(topic, "retention")

    def roll(self, topic: str) -> None:
        """Roll a new segment in each of the topic's partitions."""
        self._command(topic, "roll")

    def flush(self, topic: str) -> None:
        """Flush the topic's data to disk."""
        self._command(topic, "flush")

    def _command(self, topic: str, name: str) -> None:
        self.ask("POST", f"/topics/{quote(topic, '')}/{name}")

    def partition(self, topic: str, partition: int = 0) -> dict[str, Any]:
        """Return a partition's `leader`, `leader_epoch`, `replicas`, and in-sync replicas (`isr`)."""
        return dict(self.ask("GET", f"/topics/{quote(topic, '')}/partitions/{partition}"))

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> dict[str, Any]:
        """Elect an in-sync replica as leader of a partition, and make it the preferred leader. If `to` is
        None, elect the preferred leader. Return the partition's state.
        """
        return self._of_partition(topic, partition, "leader", to)

    def shrink_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Stop a follower's fetches, remove it from the ISR, and return the partition's state."""
        return self._of_partition(topic, partition, "shrink", broker)

    def restore_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Let a follower fetch again, wait until it is in the ISR, and return the partition's state."""
        return self._of_partition(topic, partition, "restore", broker)

    def _of_partition(self, topic: str, partition: int, what: str, broker: int | None) -> dict[str, Any]:
        given = {} if broker is None else {"broker": broker}
        path = f"/topics/{quote(topic, '')}/partitions/{partition}/{what}"
        return dict(self.ask("POST", path, **given))

    def expire_member(self, group: str, member_id: str) -> None:
        """Expire a member's session, as if it sent no heartbeats. `await_group` returns member IDs."""
        self.ask("POST", f"/groups/{quote(group, '')}/members/{quote(member_id, '')}/expire")

    def expire_locks(self, group: str, topic: str, partition: int | None = None) -> int:
        """Expire the acquisition locks of a share group for a topic or a partition, as if the consumers did
        not acknowledge the records in time. Return the number of records.
        """
        given = {} if partition is None else {"partition": partition}
        path = f"/share-groups/{quote(group, '')}/topics/{quote(topic, '')}/expire-locks"
        return int(self.ask("POST", path, **given)["records"])

    def remove_faults(self) -> None:
        """Remove all faults that were created with `fault`."""
        self.ask("DELETE", "/faults")

    def reset(self) -> None:
        """Delete all topics, groups, transactions and faults, and return to real time."""
        self.ask("POST", "/reset")

    def await_group(
        self,
        group: str,
        *,
        state: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        timeout_s: float = 10.0,
    ) -> dict[str, Any]:
        """Wait until a group has the given state ("Stable", "Empty", …), the given number of members, and at
        most the given lag, and return its state, members and lag.
        """
        wanted = {"state": state, "members": members, "lag": lag}
        return dict(self._await(f"/groups/{quote(group, '')}/await", wanted, timeout_s))

    def await_accepted(
        self,
        group: str,
        topic: str,
        *,
        remaining: int | None = None,
        in_flight: int | None = None,
        timeout_s: float = 10.0,
    ) -> dict[str, int]:
        """Wait until a share group has accepted or archived all records of a topic, or all but `remaining`,
        or until `in_flight` records are acquired or released. Return both numbers.
        """
        wanted = {"remaining": remaining, "in_flight": in_flight}
        path = f"/share-groups/{quote(group, '')}/topics/{quote(topic, '')}/await"
        return dict(self._await(path, wanted, timeout_s))

    def await_records(self, topic: str, count: int, *, timeout_s: float = 10.0) -> int:
        """Wait until at least `count` records can be read, and return the number of records."""
        return int(self._await(f"/topics/{quote(topic, '')}/await", {"records": count}, timeout_s)["records"])

    def await_transaction(self, transactional_id: str, state: str, *, timeout_s: float = 10.0) -> None:
        """Wait until a transactional ID is in the given state, such as "CompleteCommit" or "Ongoing"."""
        self._await(f"/transactions/{quote(transactional_id, '')}/await", {"state": state}, timeout_s)

    def _await(self, path: str, wanted: Mapping[str, object], timeout_s: float) -> Any:
        given = {name: value for name, value in wanted.items() if value is not None}
        query = urlencode({**given, "timeout_ms": round(timeout_s * 1000)})
        return self.ask("GET", f"{path}?{query}", waits_s=timeout_s)

    def ask(self, method: str, path: str, *, waits_s: float = 0.0, **body: object) -> Any:
        """Send a request to the control API, and return the decoded response."""
        given = json.dumps(body).encode() if body else None
        response = request(self._api.below(path), method, given, {}, _TIMEOUT_S + waits_s)
        answer: Any = json.loads(response.body) if response.body else None
        if response.status >= 400:
            raise ControlFailed(answer["detail"])
        return answer


class Fault:
    """A fault created by `Control.fault`."""

    def __init__(self, control: Control, number: int) -> None:
        self._control = control
        self.number = number

    @property
    def hits(self) -> int:
        """Number of requests affected by the fault."""
        shown = self._control.ask("GET", "/faults")
        return int(next(each["hits"] for each in shown if each["number"] == self.number))

    def await_hits(self, count: int = 1, *, timeout_s: float = 10.0) -> None:
        """Wait until the fault has affected `count` requests."""
        query = urlencode({"hits": count, "timeout_ms": round(timeout_s * 1000)})
        self._control.ask("GET", f"/faults/{self.number}/await?{query}", waits_s=timeout_s)

    def remove(self) -> int:
        """Remove the fault, and return the number of affected requests."""
        return int(self._control.ask("DELETE", f"/faults/{self.number}")["hits"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
