"""Checkers for anomalies in a history of transactions, as defined by Jepsen's Kafka workload.

The index of a value is the rank of its offset among all offsets of its key that hold values, so that markers
and aborted records leave no gaps. Kafka does not isolate the writes of transactions from each other: cycles
of writes alone (G0), and records of others between two sends of one operation, are not anomalies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.history.model import UNKNOWN, Assign, Operation, Read, Send

Value = tuple[int, int]
"""(key, value)"""


class History:
    """Indexes of a history that several checkers use."""

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self.ok = [operation for operation in operations if operation.type == "ok"]
        self.writers: dict[Value, Operation] = {}
        self.readers: dict[Value, list[Operation]] = defaultdict(list)
        for operation in operations:
            for sent in operation.sends:
                self.writers[sent.key, sent.value] = operation
        for operation in self.ok:
            for read in operation.reads:
                self.readers[read.key, read.value].append(operation)
        self.log: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for operation in operations:
            for read in operation.reads:
                self.log[read.key][read.offset].add(read.value)
            if self.committed(operation):
                for sent in operation.sends:
                    if sent.offset != UNKNOWN:
                        self.log[sent.key][sent.offset].add(sent.value)
        self.indexes: dict[Value, list[int]] = defaultdict(list)
        for key, offsets in self.log.items():
            for index, offset in enumerate(sorted(offsets)):
                for value in offsets[offset]:
                    self.indexes[key, value].append(index)

    def committed(self, operation: Operation) -> bool:
        """Return whether the operation happened: it was acknowledged, or a process read its writes."""
        return operation.type == "ok" or (
            operation.type == "info"
            and any((sent.key, sent.value) in self.readers for sent in operation.sends)
        )

    def delta(self, first: Read | Send, second: Read | Send) -> int:
        """Return the distance from the first to the second in their key, or 1 if either is unknown."""
        one = self.indexes.get((first.key, first.value))
        two = self.indexes.get((second.key, second.value))
        return two[0] - one[0] if one and two else 1


def anomalies(operations: list[Operation]) -> dict[str, list[str]]:
    """Return the anomalies by checker, or an empty dict if there are none."""
    history = History(operations)
    found = {name: list(checker(history)) for name, checker in CHECKERS.items()}
    return {name: problems for name, problems in found.items() if problems}


def inconsistent_offsets(history: History) -> Iterator[str]:
    for key, offsets in history.log.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                yield f"key {key} offset {offset}: {sorted(values)}"


def duplicates(history: History) -> Iterator[str]:
    for (key, value), indexes in history.indexes.items():
        if len(indexes) > 1:
            yield f"key {key} value {value} at {len(indexes)} offsets"


def aborted_reads(history: History) -> Iterator[str]:
    for value, readers in history.readers.items():
        writer = history.writers.get(value)
        if writer is not None and writer.type == "fail":
            yield f"{value} of [{writer}] read by [{readers[0]}]"


def precommitted_reads(history: History) -> Iterator[str]:
    for operation in history.operations:
        own = {(sent.key, sent.value) for sent in operation.sends}
        for read in operation.reads:
            if (read.key, read.value) in own:
                yield f"{read} by its writer [{operation}]"


def lost_writes(history: History) -> Iterator[str]:
    bounds: dict[int, int] = defaultdict(lambda: -1)
    for key, value in history.readers:
        indexes = history.indexes[key, value]
        bounds[key] = max(bounds[key], indexes[0])
    for (key, value), indexes in history.indexes.items():
        if indexes[-1] <= bounds[key] and (key, value) not in history.readers:
            writer = history.writers.get((key, value))
            if writer is not None and history.committed(writer):
                yield f"key {key} value {value} of [{writer}]"


def internal_polls(history: History) -> Iterator[str]:
    for operation in history.operations:
        last: dict[int, Read] = {}
        for read in operation.reads:
            before = last.get(read.key)
            if before is not None and history.delta(before, read) != 1:
                yield f"{read} after {before} in one operation of process {operation.process}"
            last[read.key] = read


def internal_sends(history: History) -> Iterator[str]:
    for operation in history.operations:
        last: dict[int, Send] = {}
        for sent in operation.sends:
            before = last.get(sent.key)
            if before is not None and history.delta(before, sent) < 1:
                yield f"{sent} after {before} in one operation of process {operation.process}"
            last[sent.key] = sent


def polls(history: History) -> Iterator[str]:
    last: dict[int, dict[int, Read]] = defaultdict(dict)
    for operation in history.ok:
        known = last[operation.process]
        for step in operation.steps:
            if isinstance(step, Assign):
                for key in set(known) - step.keys:
                    del known[key]
        firsts: dict[int, Read] = {}
        for read in operation.reads:
            firsts.setdefault(read.key, read)
        for key, first in firsts.items():
            if key in known and history.delta(known[key], first) != 1:
                yield f"process {operation.process}: {first} after {known[key]}"
        known.update((read.key, read) for read in operation.reads)


def sends(history: History) -> Iterator[str]:
    last: dict[tuple[int, int], Send] = {}
    for operation in history.operations:
        if operation.type == "fail":
            continue
        firsts: dict[int, Send] = {}
        for sent in operation.sends:
            firsts.setdefault(sent.key, sent)
        for key, first in firsts.items():
            before = last.get((operation.process, key))
            if before is not None and history.delta(before, first) < 1:
                yield f"process {operation.process}: {first} after {before}"
        last.update(((operation.process, sent.key), sent) for sent in operation.sends)


def unseen(history: History) -> Iterator[str]:
    for operation in history.ok:
        for sent in operation.sends:
            if (sent.key, sent.value) not in history.readers:
                yield f"{sent} of process {operation.process}"


def phantoms(history: History) -> Iterator[str]:
    for operation in history.operations:
        for read in operation.reads:
            if (read.key, read.value) not in history.writers:
                yield f"{read} by process {operation.process}"


def cycles(history: History) -> Iterator[str]:
    """G1c: cycles in the flow of information, through reads (wr), the order of a process, and real time."""
    happened = [operation for operation in history.operations if history.committed(operation)]
    edges: dict[object, list[object]] = defaultdict(list)
    for value, readers in history.readers.items():
        writer = history.writers.get(value)
        if writer is not None and history.committed(writer):
            edges[writer] += [reader for reader in readers if reader is not writer]
    by_process: dict[int, Operation] = {}
    for operation in sorted(happened, key=lambda item: item.begin):
        if operation.process in by_process:
            edges[by_process[operation.process]].append(operation)
        by_process[operation.process] = operation
    # Represent real time as a chain of moments: the end of an operation precedes its moment, and a moment
    # precedes all operations that begin after it.
    events = sorted(
        [(operation.end, 1, number) for number, operation in enumerate(happened) if operation.type == "ok"]
        + [(operation.begin, 0, number) for number, operation in enumerate(happened)]
    )
    moment = 0
    for _, is_end, number in events:
        if is_end:
            edges[happened[number]].append(moment + 1)
            edges[moment].append(moment + 1)
            moment += 1
        else:
            edges[moment].append(happened[number])
    for circle in _circles(edges):
        members = [str(member) for member in circle if isinstance(member, Operation)]
        yield f"{len(members)} operations: {members[:4]}"


def _circles(edges: dict[object, list[object]]) -> Iterator[list[object]]:
    """Repeatedly remove nodes without predecessors or without successors from a graph, and return the rest:
    the cycles and the paths between them.
    """
    incoming: dict[object, int] = defaultdict(int)
    for targets in edges.values():
        for target in targets:
            incoming[target] += 1
    nodes = set(edges) | set(incoming)
    ready = [node for node in nodes if not incoming[node]]
    while ready:
        node = ready.pop()
        nodes.discard(node)
        for target in edges.get(node, ()):
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    changed = True
    while changed:
        ends = {node for node in nodes if not any(target in nodes for target in edges.get(node, ()))}
        nodes -= ends
        changed = bool(ends)
    if nodes:
        yield sorted(nodes, key=str)


def sets(history: History) -> Iterator[str]:
    """The streaming checker for long runs compares offsets with earlier acknowledgements."""
    for key in history.log:
        writes = [
            (operation, sent)
            for operation in history.operations
            for sent in operation.sends
            if sent.key == key and sent.offset != UNKNOWN
        ]
        yield from _offsets_rise(key, writes)
        acknowledged = {sent.offset: sent.value for operation, sent in writes if operation.type == "ok"}
        for operation in history.ok:
            for read in operation.reads:
                if read.key == key and acknowledged.get(read.offset, read.value) != read.value:
                    yield f"{read}, where {acknowledged[read.offset]} was acknowledged"


def _offsets_rise(key: int, writes: Iterable[tuple[Operation, Send]]) -> Iterator[str]:
    """The offset of a write is above all offsets acknowledged before its operation began, and each offset
    occurs once.
    """
    given: dict[int, int] = {}
    moments: list[tuple[int, int, int]] = []
    for operation, sent in writes:
        if sent.offset in given:
            yield f"key {key} offset {sent.offset} was given to {given[sent.offset]} and {sent.value}"
        given[sent.offset] = sent.value
        moments.append((operation.begin, 0, sent.offset))
        if operation.type == "ok":
            moments.append((operation.end, 1, sent.offset))
    highest = -1
    for _, is_end, offset in sorted(moments):
        if is_end:
            highest = max(highest, offset)
        elif offset <= highest:
            yield f"key {key} offset {offset} was given when {highest} was acknowledged already"


def rereads(history: History) -> Iterator[str]:
    """The offsets that one operation polls for a key must increase."""
    for operation in history.operations:
        last: dict[int, Read] = {}
        for read in operation.reads:
            before = last.get(read.key)
            if before is not None and read.offset <= before.offset:
                yield f"process {operation.process}: {read} after {before}"
            last[read.key] = read


CHECKERS = {
    "inconsistent offsets": inconsistent_offsets,
    "duplicate": duplicates,
    "aborted read (G1a)": aborted_reads,
    "precommitted read": precommitted_reads,
    "lost write": lost_writes,
    "internal poll skip or non-monotonic poll": internal_polls,
    "internal non-monotonic send": internal_sends,
    "poll skip or non-monotonic poll": polls,
    "non-monotonic send": sends,
    "unseen": unseen,
    "cycle (G1c)": cycles,
    "phantom": phantoms,
    "set": sets,
    "reread": rereads,
}
