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
    """What was asked was not done; the text is the broker's."""


class Control:
    """Each call is one request of its own, from whatever thread."""

    def __init__(self, url: str) -> None:
        self.url = url
        """Where it is asked: for requests of your own."""
        self._api = place(url).below(_PREFIX)

    def now_ms(self) -> int:
        """What time of day it is to the broker, in milliseconds since the Unix epoch."""
        return int(self.ask("GET", "/time")["now_ms"])

    def advance(self, by: timedelta | float) -> int:
        """Put the broker's time forward, by so many seconds if it is a number: retention, sessions,
        transactions and timestamps follow before this returns. The time of day then, in milliseconds.
        ControlFailed.
        """
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        return int(self.ask("POST", "/time", advance_ms=round(seconds * 1000))["now_ms"])

    def stand_still(self, *, still: bool = True) -> None:
        """Have the broker's time go on by `advance` alone, to the millisecond, until it is `still=False` or
        reset. Whatever takes time in a broker then waits for `advance`: a rebalance's delay, too.
        """
        self.ask("POST", "/time/stand", still=still)

    def events(self) -> list[dict[str, Any]]:
        """What happened while time was put forward, in its order: sessions and transactions that ended,
        records that were deleted or compacted. `after_ms` counts from the beginning of its `advance`.
        """
        return list(self.ask("GET", "/events"))

    @contextlib.contextmanager
    def record(self) -> Iterator[Callable[[], list[dict[str, Any]]]]:
        """Keep what clients ask in a block and what they are answered: `with control.record() as recorded`
        has it in `recorded()`, then and later. Each request has `api`, `version`, `client_id`, `connection`
        (a number), `at_ms`, and `request` and `response` by the names of Kafka's fields in snake_case, bytes
        as base64; `kafka_compat.testing.replay` asks it all again. Passwords, and records that are read, are
        left out.
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
        """Have requests fail from now on, until the fault is removed (it is a context manager, too).

        Whose: `api` ("Produce", "OffsetCommit", …), `client_id`, `broker`, `topic`, `partition`, `group`,
        `transactional_id`, `version`. How often: `skip`, `count`, `probability` with a `seed`. How: `error`
        by Kafka's name (of a topic or partition that is given, others are served), `delay_ms`, `drop=True`
        (nothing is done, the connection ends), or it is done, and `lose_answer=True` (the connection ends),
        `cut=True` (after half of the answer), `corrupt=True` (bits of it are others). ControlFailed.
        """
        given = how if api is None else {"api": api, **how}
        return Fault(self, int(self.ask("POST", "/faults", **given)["number"]))

    def disks(self) -> list[dict[str, Any]]:
        """The log directories of all brokers, and what is wrong with them."""
        return list(self.ask("GET", "/disks"))

    def break_disks(self, *, broker: int | None = None, **how: Any) -> list[dict[str, Any]]:
        """Have log directories, all or those of a broker, or one by its path as `log_dir`, be `full=True`
        until `mend_disks`, `failed=True` until the broker is started again, or slower by `slow_ms` for each
        write and sync. All as they are then. ControlFailed.
        """
        given = how if broker is None else {"broker": broker, **how}
        return list(self.ask("POST", "/disks", **given))

    def mend_disks(self) -> list[dict[str, Any]]:
        """Have all of them work again, but for those that are offline. All as they are then."""
        return list(self.ask("DELETE", "/disks"))

    def fork(self, topic: str, name: str, *, groups: Iterable[str] | Literal["all"] = ()) -> str:
        """Make the topic `name`, which holds what `topic` holds now, at once, however much that is: records
        with their offsets and times, settings, and on demand the positions of groups. Both go their own ways
        then. `name`. ControlFailed.
        """
        wanted = True if groups == "all" else list(groups)
        self.ask("POST", f"/topics/{quote(topic, '')}/fork", name=name, groups=wanted)
        return name

    def brokers(self) -> list[dict[str, Any]]:
        """The brokers, and what they do not reach."""
        return list(self.ask("GET", "/brokers"))

    def pause(self, broker: int) -> None:
        """Have a broker stand still: it answers nobody, and reaches nobody, until `resume`."""
        self.ask("POST", f"/brokers/{broker}/pause")

    def resume(self, broker: int) -> None:
        """Have it go on."""
        self.ask("POST", f"/brokers/{broker}/resume")

    def cut(self, broker: int, other: int) -> None:
        """Have two brokers of a cluster not reach each other, until `mend`. ControlFailed."""
        self.ask("POST", f"/brokers/{broker}/cut", **{"from": other})

    def cut_coordination(self, broker: int) -> None:
        """Have a broker of a cluster not reach what coordinates them, ZooKeeper's part: its session expires
        after zookeeper.session.timeout.ms. ControlFailed.
        """
        self.ask("POST", f"/brokers/{broker}/cut", coordination=True)

    def mend(self, broker: int) -> None:
        """Have it reach all others, and what coordinates them."""
        self.ask("POST", f"/brokers/{broker}/mend")

    def expire_session(self, broker: int) -> None:
        """Have the session of a broker of a cluster with what coordinates them end: it registers anew, and
        others may lead in between. ControlFailed.
        """
        self.ask("POST", f"/brokers/{broker}/expire")

    def snapshot(self, name: str) -> str:
        """Keep all that the broker holds now, under a name, in the place of an earlier one of that name:
        topics, groups, transactions, settings, time. `name`. ControlFailed.
        """
        self.ask("POST", "/snapshots", name=name)
        return name

    def snapshots(self) -> list[str]:
        """The names of those that there are."""
        return list(self.ask("GET", "/snapshots"))

    def restore(self, name: str) -> None:
        """Have the broker hold what it held then, and no more. Its clients are disconnected, and go on when
        they have come again; what they had open then, such as a transaction, is open again. ControlFailed.
        """
        self.ask("POST", f"/snapshots/{quote(name, '')}/restore")

    def delete_snapshot(self, name: str) -> None:
        """Forget one. ControlFailed."""
        self.ask("DELETE", f"/snapshots/{quote(name, '')}")

    def compact(self, topic: str) -> None:
        """Compact a topic (cleanup.policy=compact) up to its last record, and return when it is done."""
        self._command(topic, "compact")

    def apply_retention(self, topic: str) -> None:
        """Delete what the topic's retention no longer keeps."""
        self._command(topic, "retention")

    def roll(self, topic: str) -> None:
        """Begin a new segment in each of its partitions."""
        self._command(topic, "roll")

    def flush(self, topic: str) -> None:
        """Have all that it holds on disk."""
        self._command(topic, "flush")

    def _command(self, topic: str, name: str) -> None:
        self.ask("POST", f"/topics/{quote(topic, '')}/{name}")

    def partition(self, topic: str, partition: int = 0) -> dict[str, Any]:
        """Who leads it (`leader`, since `leader_epoch`), its `replicas`, and those in sync (`isr`)."""
        return dict(self.ask("GET", f"/topics/{quote(topic, '')}/partitions/{partition}"))

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> dict[str, Any]:
        """Have a partition be led by a broker that is in sync, which is its preferred leader from then on, or
        by its preferred leader. The partition as it is then. ControlFailed.
        """
        return self._of_partition(topic, partition, "leader", to)

    def shrink_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Have a follower fetch no more, and fall out of sync at once. The partition then. ControlFailed."""
        return self._of_partition(topic, partition, "shrink", broker)

    def restore_isr(self, topic: str, partition: int = 0, *, broker: int) -> dict[str, Any]:
        """Let it catch up again, and wait until it is in sync. The partition then. ControlFailed."""
        return self._of_partition(topic, partition, "restore", broker)

    def _of_partition(self, topic: str, partition: int, what: str, broker: int | None) -> dict[str, Any]:
        given = {} if broker is None else {"broker": broker}
        path = f"/topics/{quote(topic, '')}/partitions/{partition}/{what}"
        return dict(self.ask("POST", path, **given))

    def expire_member(self, group: str, member_id: str) -> None:
        """Have the session of a member end, as if it had not been heard of: `await_group` tells its id."""
        self.ask("POST", f"/groups/{quote(group, '')}/members/{quote(member_id, '')}/expire")

    def remove_faults(self) -> None:
        """Take all faults away."""
        self.ask("DELETE", "/faults")

    def reset(self) -> None:
        """Forget all topics, groups, transactions and faults; return to the machine's time. ControlFailed."""
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
        """Wait until a group has that state ("Stable", "Empty", …), so many members, and at most so many
        records behind what it committed. What it is then: state, members, lag. ControlFailed.
        """
        wanted = {"state": state, "members": members, "lag": lag}
        return dict(self._await(f"/groups/{quote(group, '')}/await", wanted, timeout_s))

    def await_records(self, topic: str, count: int, *, timeout_s: float = 10.0) -> int:
        """Wait until so many records of a topic can be read; how many there are then. ControlFailed."""
        return int(self._await(f"/topics/{quote(topic, '')}/await", {"records": count}, timeout_s)["records"])

    def await_transaction(self, transactional_id: str, state: str, *, timeout_s: float = 10.0) -> None:
        """Wait until a transactional id has that state ("CompleteCommit", "Ongoing", …). ControlFailed."""
        self._await(f"/transactions/{quote(transactional_id, '')}/await", {"state": state}, timeout_s)

    def _await(self, path: str, wanted: Mapping[str, object], timeout_s: float) -> Any:
        given = {name: value for name, value in wanted.items() if value is not None}
        query = urlencode({**given, "timeout_ms": round(timeout_s * 1000)})
        return self.ask("GET", f"{path}?{query}", waits_s=timeout_s)

    def ask(self, method: str, path: str, *, waits_s: float = 0.0, **body: object) -> Any:
        """The answer of the control API itself. ControlFailed."""
        given = json.dumps(body).encode() if body else None
        response = request(self._api.below(path), method, given, {}, _TIMEOUT_S + waits_s)
        answer: Any = json.loads(response.body) if response.body else None
        if response.status >= 400:
            raise ControlFailed(answer["detail"])
        return answer


class Fault:
    """One that was made by `Control.fault`."""

    def __init__(self, control: Control, number: int) -> None:
        self._control = control
        self.number = number

    @property
    def hits(self) -> int:
        """How many requests it has hit."""
        shown = self._control.ask("GET", "/faults")
        return int(next(each["hits"] for each in shown if each["number"] == self.number))

    def await_hits(self, count: int = 1, *, timeout_s: float = 10.0) -> None:
        """Wait until so many requests were hit. ControlFailed."""
        query = urlencode({"hits": count, "timeout_ms": round(timeout_s * 1000)})
        self._control.ask("GET", f"/faults/{self.number}/await?{query}", waits_s=timeout_s)

    def remove(self) -> int:
        """Take it away; how many it has hit."""
        return int(self._control.ask("DELETE", f"/faults/{self.number}")["hits"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
