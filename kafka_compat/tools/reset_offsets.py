"""kafka-consumer-groups --reset-offsets: compute the new offsets of groups, and commit them."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.groups import (
    DEAD,
    EMPTY,
    Committed,
    commit_offsets,
    committed_offsets,
    describe_group,
)
from kafka_compat.client.leaders import EARLIEST, LATEST, leaders_of, list_offsets, partitions_of
from kafka_compat.client.partitions import TopicPartition
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.tools import show
from kafka_compat.tools.chosen_groups import SCENARIOS, awaited, groups_meant, partitions_in
from kafka_compat.tools.failure import Failure, illegal_argument, java_int, log
from kafka_compat.tools.options import Options

_LOGGER: Final = "org.apache.kafka.tools.OffsetsUtils"
_TIMESTAMP: Final = re.compile(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d(?::?\d\d)?)", re.ASCII)
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_DAY_MS: Final = 86_400_000

Offsets = dict[TopicPartition, int]


def reset_offsets(cluster: Cluster, options: Options) -> None:
    """Run --reset-offsets. Raises Failure if an argument is invalid or a request fails."""
    plan: dict[str, Offsets] = {}
    for group_id in groups_meant(cluster, options):
        with awaited():
            try:
                state = describe_group(cluster, group_id).state
            except KafkaError as error:
                if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                state = DEAD
        if state not in (EMPTY, DEAD):
            print(
                f"\nError: Offsets can only be reset while the group '{group_id}' is inactive; its "
                f"state is {state}.",
                file=options.errors,
            )
            plan[group_id] = {}
            continue
        planner = Planner(cluster, options, group_id, partial(_committed, cluster, group_id))
        plan[group_id] = planner.offsets()
        if options.has("execute"):
            new = {place: Committed(offset) for place, offset in plan[group_id].items()}
            commit_offsets(cluster, group_id, new)
    print_plan(plan, options)


def _committed(cluster: Cluster, group_id: str) -> Offsets:
    with awaited():
        found = committed_offsets(cluster, group_id)
    return {place: one.offset for place, one in found.items()}


def print_plan(plan: Mapping[str, Offsets], options: Options) -> None:
    """Print the new offsets of groups as a table, as CSV (--export) or as JSON."""
    rows = [
        (group_id, topic, number, offset)
        for group_id, offsets in plan.items()
        for (topic, number), offset in sorted(offsets.items())
    ]
    if options.as_json:
        names = ("group", "topic", "partition", "new_offset")
        show.as_json([dict(zip(names, row, strict=True)) for row in rows])
    elif options.has("export"):
        first = int(len(options.values("group")) == 1)
        print("".join(",".join(map(_csv, row[first:])) + "\n" for row in rows))
    else:
        table = show.table(
            ("GROUP", max([15, *map(len, plan)]), [row[0] for row in rows]),
            show.column("TOPIC", [row[1] for row in rows]),
            ("PARTITION", 10, [str(row[2]) for row in rows]),
            ("NEW-OFFSET", 0, [str(row[3]) for row in rows]),
        )
        print("".join(f"\n{line}" for line in table) if plan else "")


def _csv(cell: object) -> str:
    text = str(cell)
    return f'"{text}"' if re.search(r'[,"\s]', text) else text


class Planner:
    """The calculation of one group's new offsets. `current` returns its current offsets."""

    def __init__(
        self, cluster: Cluster, options: Options, group_id: str, current: Callable[[], Offsets]
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._group_id = group_id
        self._current = current

    def offsets(self) -> Offsets:
        """Return the new offsets. Raises Failure if an argument is invalid or a request fails."""
        partitions = self._partitions()
        self._check(partitions)
        options = self._options
        scenario = next((name for name in SCENARIOS if options.has(name)), None)
        if scenario is None:
            listed = ", ".join(f"[{name}]" for name in SCENARIOS)
            options.usage_error(
                f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]"
            )
        match scenario:
            case "to-offset":
                offset = options.integer("to-offset", 64) or 0
                return self._in_range(dict.fromkeys(partitions, offset))
            case "to-earliest":
                return self._listed(partitions, EARLIEST)
            case "to-latest":
                return self._listed(partitions, LATEST)
            case "shift-by":
                return self._in_range(self._shifted(partitions, options.integer("shift-by", 64) or 0))
            case "to-datetime":
                return self._at_time(partitions, milliseconds_at(options.given("to-datetime")))
            case "by-duration":
                length_ms = milliseconds_in(options.given("by-duration"))
                return self._at_time(partitions, int(time.time() * 1000) - length_ms)
            case "from-file":
                return self._from_file(options.given("from-file"))
            case _:
                current = self._current()
                known = {place: current[place] for place in partitions if place in current}
                return known | self._listed([place for place in partitions if place not in known], LATEST)

    def _partitions(self) -> list[TopicPartition]:
        options = self._options
        if options.has("all-topics"):
            return sorted(self._current())
        if not options.has("topic"):
            if not options.has("from-file"):
                options.usage_error("Specify --all-topics or --topic.")
            return []
        topics = options.values("topic")
        named = [place for topic in topics if ":" in topic for place in partitions_in(topic)]
        whole = [topic for topic in topics if ":" not in topic]
        found = partitions_of(self._cluster, whole, "describeTopics")
        return named + [(topic, number) for topic, numbers in found.items() for number in numbers]

    def _check(self, partitions: Iterable[TopicPartition]) -> None:
        with awaited():
            leaders = leaders_of(self._cluster, {topic for topic, _ in partitions})
        for kind, what, missing in (
            ("UnknownTopicOrPartition", "do not exist", [one for one in partitions if one not in leaders]),
            ("LeaderNotAvailable", "have no leader", [one for one in partitions if leaders.get(one) == -1]),
        ):
            if missing:
                names = ",".join(f"{topic}-{number}" for topic, number in missing)
                text = f'The partitions "{names}" {what}'
                raise Failure(f"org.apache.kafka.common.errors.{kind}Exception", text)

    def _listed(self, partitions: Iterable[TopicPartition], when: int) -> Offsets:
        with awaited():
            found = list_offsets(self._cluster, dict.fromkeys(partitions, when))
        return {place: one.offset for place, one in found.items()}

    def _shifted(self, partitions: Iterable[TopicPartition], by: int) -> Offsets:
        current = self._current()
        found = {}
        for place in partitions:
            if place not in current:
                topic, number = place
                raise illegal_argument(
                    f"Cannot shift the offset of partition {topic}-{number}: none is committed"
                )
            found[place] = current[place] + by
        return found

    def _at_time(self, partitions: Iterable[TopicPartition], when_ms: int) -> Offsets:
        found = self._listed(partitions, when_ms)
        late = [place for place, offset in found.items() if offset < 0]
        for topic, number in late:
            print(f"\nWarn: Partition {number} of topic {topic} is empty. Using its end offset.")
        return found | self._listed(late, LATEST)

    def _in_range(self, wanted: Offsets) -> Offsets:
        starts, ends = self._listed(wanted, EARLIEST), self._listed(wanted, LATEST)
        found = {}
        for (topic, number), offset in wanted.items():
            start, end = starts[topic, number], ends[topic, number]
            found[topic, number] = min(max(offset, start), end)
            if not start <= offset <= end:
                compared = "higher than latest" if offset > end else "lower than earliest"
                text = f"New offset ({offset}) is {compared} offset for topic partition {topic}-{number}. "
                log("WARN", f"{text}Value will be set to {found[topic, number]}", _LOGGER)
        return found

    def _from_file(self, path: str) -> Offsets:
        plan = _plan_in(path, self._options.values("group"))
        if self._group_id not in plan:
            print(f"\nError: No reset plan for group {self._group_id} found", file=self._options.errors)
            return {}
        return self._in_range(plan[self._group_id])


def _plan_in(path: str, groups: list[str]) -> dict[str, Offsets]:
    """Read each group's offsets from a file with the columns `group,topic,partition,offset`. The group column
    is optional if only one group is named. Raises Failure if the file is invalid.
    """
    import csv

    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except csv.Error as error:
        text = f"{path} is not a CSV file: {error}"
        raise Failure("java.lang.RuntimeException", text, Failure("java.io.IOException", text)) from None
    except OSError as error:
        missing = Failure("java.nio.file.NoSuchFileException", path)
        cause = Failure("java.io.IOException", f"Unable to read file {path}", missing)
        raise Failure("java.lang.RuntimeException", str(cause), cause) from error
    plan: dict[str, Offsets] = {}
    for row in rows:
        cells = [groups[0], *row] if len(row) == 3 and len(groups) == 1 else row
        try:
            group_id, topic, number, offset = cells
            plan.setdefault(group_id, {})[topic, java_int(number)] = java_int(offset, 64)
        except (ValueError, Failure):
            text = f"{path}: {','.join(row)} is not a row; expected [GROUP,]TOPIC,PARTITION,OFFSET"
            cause = Failure("java.io.IOException", text)
            raise Failure("java.lang.RuntimeException", text, cause) from None
    return plan


def milliseconds_at(text: str) -> int:
    """Convert YYYY-MM-DDTHH:mm:SS.sss (default: UTC) to milliseconds. Raises Failure if it is malformed."""
    if "T" not in text.rstrip("T"):
        raise _no_time("Invalid time: ISO 8601 requires a 'T' before the time of day")
    second = text.split("T")[1]
    whole = text if any(sign in second for sign in "+-Z") else f"{text}Z"
    found = _TIMESTAMP.match(whole)
    if found is None:
        raise _no_time(f'Unparseable date: "{whole}"')
    *fields, zone = found.groups()
    year, month, day, hour, minute, second_of, milliseconds = map(int, fields)
    try:
        moment = datetime(year, month, day, hour, minute, second_of, tzinfo=_zone(zone))
    except ValueError:
        raise _no_time(f'Unparseable date: "{whole}"') from None
    return int(moment.timestamp()) * 1000 + milliseconds


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    return timezone((1 if text[0] == "+" else -1) * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])))


def _no_time(message: str) -> Failure:
    cause = Failure("java.text.ParseException", message)
    return Failure("java.lang.RuntimeException", str(cause), cause)


def milliseconds_in(text: str) -> int:
    """Convert a duration PnDTnHnMn.nS to milliseconds. Raises Failure if it is malformed."""
    found = _DURATION.fullmatch(text)
    if found is None or found[3] == "T" or not any(found.group(2, 4, 5, 6)):
        raise Failure("java.time.format.DateTimeParseException", "Text cannot be parsed to a Duration")
    days, hours, minutes, seconds = (int(part or 0) for part in found.group(2, 4, 5, 6))
    fraction_ms = int((found[7] or "").ljust(3, "0")[:3])
    if (found[6] or "").startswith("-"):
        fraction_ms = -fraction_ms
    total = days * _DAY_MS + hours * 3_600_000 + minutes * 60_000 + seconds * 1000 + fraction_ms
    return -total if found[1] == "-" else total
