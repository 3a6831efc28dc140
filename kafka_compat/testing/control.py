"""Python client of the control API of a broker under test."""

from __future__ import annotations

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
    """A failed operation, with the broker's message."""


class Control:
    """Client of a broker's control API. Each call sends one request. Thread-safe."""

    def __init__(self, url: str) -> None:
        self.url = url
        """URL of the control API, for requests of your own."""
        self._api = place(url).below(_PREFIX)

    def now_ms(self) -> int:
        """Return the broker's time of day, in milliseconds since the Unix epoch."""
        return int(self.ask("GET", "/time")["now_ms"])

    def advance(self, by: timedelta | float) -> int:
        """Advance the broker's time by a timedelta or a number of seconds, and return the new time of day in
        milliseconds. Before this call returns, retention is applied, and sessions and transactions expire.
        Raises ControlFailed.
        """
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return int(self.ask("POST", "/time", advance_ms=round(seconds * 1000))["now_ms"])

    def stand_still(self, *, still: bool = True) -> None:
        """Let the broker's time change only by `advance`, until `still=False` or a reset. All delays in the
        broker then wait for `advance`, including the rebalance delay.
        """
        self.ask("POST", "/time/stand", still=still)

    def events(self) -> list[dict[str, Any]]:
        """Return the events that occurred while time was advanced, in order: expired sessions and
        transactions, deleted and compacted records. `after_ms` is the time since the beginning of the
        `advance`.
        """
        return list(self.ask("GET", "/events"))

    @contextlib.contextmanager
    def record(self) -> Iterator[Callable[[], list[dict[str, Any]]]]:
        """Record the requests of clients, and the responses to them, in a block: use `with control.record()
        as recorded`, then call `recorded()` in or after the block. Each request has `api`, `version`,
        `client_id`, `connection` (a number), `at_ms`, and `request` and `response` with Kafka's field names
        in snake_case and bytes as base64; `kafka_compat.testing.replay` repeats the requests. Passwords and
        fetched records are omitted.
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

    def fault(self, *, api: str | None = None, **how: Any) -> Fault:
        """Make requests fail until the fault, a context manager, is removed.

        Criteria: `api` ("Produce", "OffsetCommit", …), `client_id`, `broker`, `topic`, `partition`, `group`,
        `transactional_id`, `version`. Frequency: `skip`, `count`, `probability` with a `seed`. Effect:
        `error` by Kafka's name (only for the given topic or partition, if any), `delay_ms`, `drop=True`
        (connection closed before handling), or after handling `lose_answer=True` (connection closed without
        response), `cut=True` (after half of the response), `corrupt=True` (response with flipped bits).
        Raises ControlFailed.
        """
        given = how if api is None else {"api": api, **how}
        return Fault(self, int(self.ask("POST", "/faults", **given)["number"]))

    def disks(self) -> list[dict[str, Any]]:
        """Return the log directories of all brokers, with their faults."""
        return list(self.ask("GET", "/disks"))

    def break_disks(self, *, broker: int | None = None, **how: Any) -> list[dict[str, Any]]:
        """Simulate faults of all log directories, of those of one broker, or of the one with the path
        `log_dir`: `full=True` until `mend_disks`, `failed=True` until the broker restarts, or a delay of
        `slow_ms` for each write and sync. Returns the state of all disks. Raises ControlFailed.
        """
        given = how if broker is None else {"broker": broker, **how}
        return list(self.ask("POST", "/disks", **given))

    def mend_disks(self) -> list[dict[str, Any]]:
        """Remove the faults of all disks that are not offline, and return the state of all disks."""
        return list(self.ask("DELETE", "/disks"))

    def fork(self, topic: str, name: str, *, groups: Iterable[str] | Literal["all"] = ()) -> str:
        """Create the topic `name` with the current contents of `topic`, without copying records: records with
        offsets and times, settings, and optionally the groups' offsets. The two topics are then independent.
        Returns `name`. Raises ControlFailed.
        """
        wanted = True if groups == "all" else list(groups)
        self.ask("POST", f"/topics/{quote(topic, '')}/fork", name=name, groups=wanted)
        return name

    def brokers(self) -> list[dict[str, Any]]:
        """Return the brokers, each with its unreachable peers."""
        return list(self.ask("GET", "/brokers"))

    def pause(self, broker: int) -> None:
        """Pause a broker until `resume`: it neither responds to requests nor sends any."""
        self.ask("POST", f"/brokers/{broker}/pause")

    def resume(self, broker: int) -> None:
        """Resume a broker."""
        self.ask("POST", f"/brokers/{broker}/resume")

    def cut(self, broker: int, other: int) -> None:
        """Cut the connection between two brokers of a cluster, until `mend`. Raises ControlFailed."""
        self.ask("POST", f"/brokers/{broker}/cut", **{"from": other})

    def cut_coordination(self, broker: int) -> None:
        """Cut a broker off from the cluster's metadata store (which replaces ZooKeeper). Its session expires
        after zookeeper.session.timeout.ms. Raises ControlFailed.
        """
        self.ask("POST", f"/brokers/{broker}/cut", coordination=True)

    def mend(self, broker: int) -> None:
        """Restore a broker's connections to all others and to the metadata store."""
        self.ask("POST", f"/brokers/{broker}/mend")

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session with the cluster's metadata store. The broker registers again, and
        leaders may move before that. Raises ControlFailed.
        """
        self.ask("POST", f"/brokers/{broker}/expire")

    def snapshot(self, name: str) -> str:
        """Save the broker's entire state under a name, replacing an earlier snapshot: topics, groups,
        transactions, settings, time. Returns `name`. Raises ControlFailed.
        """
        self.ask("POST", "/snapshots", name=name)
        return name

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots."""
        return list(self.ask("GET", "/snapshots"))

    def restore(self, name: str) -> None:
        """Restore the state of a snapshot, and discard the current state. Clients are disconnected, and
        continue after they reconnect; open transactions of the snapshot are open again. Raises ControlFailed.
        """
        self.ask("POST", f"/snapshots/{quote(name, '')}/restore")

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot. Raises ControlFailed."""
        self.ask("DELETE", f"/snapshots/{quote(name, '')}")

    def compact(self, topic: str) -> None:
        """Compact a topic (cleanup.policy=compact) to its last record, and return when done."""
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
        """Move a partition's leadership to an in-sync broker, which becomes the preferred leader, or to the
        preferred leader. Returns the partition's state. Raises ControlFailed.
        """
        return self._of_partition(topic, partition, "leader", to)

    def shrink_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Remove a follower from the ISR, and stop its fetches. Returns the state. Raises ControlFailed."""
        return self._of_partition(topic, partition, "shrink", broker)

    def restore_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Let a follower fetch until it is in sync. Returns the partition's state. Raises ControlFailed."""
        return self._of_partition(topic, partition, "restore", broker)

    def _of_partition(self, topic: str, partition: int, what: str, broker: int | None) -> dict[str, Any]:
        given = {} if broker is None else {"broker": broker}
        path = f"/topics/{quote(topic, '')}/partitions/{partition}/{what}"
        return dict(self.ask("POST", path, **given))

    def expire_member(self, group: str, member_id: str) -> None:
        """Expire a member's session, as if it sent no heartbeats. `await_group` returns member ids."""
        self.ask("POST", f"/groups/{quote(group, '')}/members/{quote(member_id, '')}/expire")

    def remove_faults(self) -> None:
        """Remove all faults."""
        self.ask("DELETE", "/faults")

    def reset(self) -> None:
        """Delete all topics, groups, transactions and faults; return to real time. Raises ControlFailed."""
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
        """Wait until a group has the given state ("Stable", "Empty", …), this number of members, and at most
        this lag. Returns the group's state, members and lag. Raises ControlFailed.
        """
        wanted = {"state": state, "members": members, "lag": lag}
        return dict(self._await(f"/groups/{quote(group, '')}/await", wanted, timeout_s))

    def await_records(self, topic: str, count: int, *, timeout_s: float = 10.0) -> int:
        """Wait until `count` records can be read. Returns the number of records. Raises ControlFailed."""
        return int(self._await(f"/topics/{quote(topic, '')}/await", {"records": count}, timeout_s)["records"])

    def await_transaction(self, transactional_id: str, state: str, *, timeout_s: float = 10.0) -> None:
        """Wait for a state of a transactional id ("CompleteCommit", "Ongoing", …). Raises ControlFailed."""
        self._await(f"/transactions/{quote(transactional_id, '')}/await", {"state": state}, timeout_s)

    def _await(self, path: str, wanted: Mapping[str, object], timeout_s: float) -> Any:
        given = {name: value for name, value in wanted.items() if value is not None}
        query = urlencode({**given, "timeout_ms": round(timeout_s * 1000)})
        return self.ask("GET", f"{path}?{query}", waits_s=timeout_s)

    def ask(self, method: str, path: str, *, waits_s: float = 0.0, **body: object) -> Any:
        """Send a request to the control API, and return the response. Raises ControlFailed."""
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
        """Wait until the fault has affected this many requests. Raises ControlFailed."""
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
