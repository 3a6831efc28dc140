"""The archive's files, and the exactly-once publication of its batches despite crashes.

Readers see DIR/topic_dir=T/day_utc=YYYY-MM-DD/PARTITION-FIRST-LAST.parquet and skip names that begin with an
underscore. The rules:

1. A batch is written to DIR/_staging/BATCH-RUN/, a directory of this run, which readers ignore.
2. Its files are synced and checked: offsets strictly increase, and lie within the batch's range, which begins
   at the end of the last batch.
3. DIR/_log/BATCH.json then maps each staged file to its final name. Creating this file, by rename, is the
   commit: exactly these files are now the batch, which is never written again.
4. Each staged file is renamed to its final name. A rename is atomic and happens once, so a concurrent reader
   sees some files of the batch, but no file twice.
5. The staging directory is deleted last. A log entry whose staging directory exists is an unfinished
   publication: the next run to open DIR finishes it. A staging directory without a log entry is garbage.

Only the log determines the archive's content; Spark's checkpoint (DIR/_checkpoint) only selects offsets.

With a table format, the names are in DIR/table, and rule 4 ends with one commit to the table, which appends
the batch's files and stores the batch's number (see archive_table). Readers see all of the batch or nothing.
"""

import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_table import APPLICATION, ArchiveTable, table_files
from kafka_compat.pipelines.checkpoint import Offsets
from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.whole_file import holds_more_than, sync, write_json

FORMAT = {"kafka_compat_archive": 1}
TABLE = "table"
LOG_ENTRIES_KEPT = 100
_FIRST_FILES = {"_lock", "__archive.json"}
GAP_RANGES_KEPT = 20


@dataclass(slots=True)
class PartitionTotals:
    """Totals for one archived partition.

    Of the offsets in [start, end), `rows` have a record and `gaps` do not. `gap_ranges` contains the first
    gaps, at most GAP_RANGES_KEPT.
    """

    start: int
    end: int
    rows: int = 0
    gaps: int = 0
    first: int | None = None
    last: int | None = None
    gap_ranges: list[list[int]] = field(default_factory=list)


@dataclass(slots=True)
class ArchiveState:
    """The archive's state after the batch `batch_id`: totals by topic and partition, and the topic IDs."""

    batch_id: int = -1
    topics: dict[str, dict[int, PartitionTotals]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A staged file: records of one partition and one UTC day, and their offsets as runs."""

    name: str
    topic: str
    partition: int
    day: str
    first: int
    last: int
    runs: Any

    @property
    def final_name(self) -> str:
        return f"topic_dir={self.topic}/day_utc={self.day}/{self.partition}-{self.first}-{self.last}.parquet"


class ArchiveStore:
    """An archive directory on a local or shared POSIX file system, used by one job at a time. `format` is one
    of archive_table.FORMATS.
    """

    def __init__(self, directory: Path, format: str = "parquet") -> None:
        self.directory = directory
        self._format = format
        self._table: ArchiveTable | None = None
        self._files = directory if format == "parquet" else directory / TABLE
        self.checkpoint = directory / "_checkpoint"
        self._marker = directory / "_archive.json"
        self._staging = directory / "_staging"
        self._log = directory / "_log"
        self._run = uuid.uuid4().hex[:12]

    def open(self, table: ArchiveTable | None = None) -> ArchiveState:
        """Create or open the directory, finish an interrupted publication, and return the archive's state.

        `table` is DIR/table for a table format. Raises NotStarted if the directory is neither empty nor an
        archive of this format, if the checkpoint is missing, or if the table is not that of this archive.
        """
        self.check()
        self._table = table
        self.directory.mkdir(parents=True, exist_ok=True)
        write_json(self._marker, self._described())
        self._log.mkdir(exist_ok=True)
        if table is not None:
            table.recover()
        for entry in sorted(self._log.glob("[0-9]*.json")):
            self._publish(int(entry.stem), json.loads(entry.read_text()))
        shutil.rmtree(self._staging, ignore_errors=True)
        self._staging.mkdir(exist_ok=True)
        state = self.state()
        if state.batch_id >= 0 and not (self.checkpoint / "offsets").is_dir():
            raise NotStarted(
                f"{self.directory} holds records up to batch {state.batch_id}, but its checkpoint is "
                "missing.",
                f"Restore {self.checkpoint}, or archive to a new directory to avoid duplicates.",
            )
        if table is not None and table.last_batch() != state.batch_id:
            raise NotStarted(
                f"{self._files} ends at batch {table.last_batch()}, but the archive ends at batch "
                f"{state.batch_id}.",
                "Restore the whole directory from one backup, or archive to a new directory.",
            )
        return state

    def check(self) -> None:
        """Raise NotStarted if the directory is neither empty nor an archive. Changes no files."""
        if self._marker.exists():
            found = json.loads(self._marker.read_text())
            if {**found, "format": ""} == {**FORMAT, "format": ""} and found != self._described():
                raise NotStarted(
                    f"{self.directory} is an archive in the format {found.get('format', 'parquet')}.",
                    "Add --format with this format, or choose a new directory with --to.",
                )
            if found != self._described():
                raise NotStarted(
                    f"{self.directory} was written by another version: {self._marker.read_text()}."
                )
        elif holds_more_than(self.directory, _FIRST_FILES):
            raise NotStarted(
                f"{self.directory} is not empty and not an archive.",
                "Choose an empty or new directory with --to.",
            )

    def _described(self) -> dict[str, Any]:
        return FORMAT if self._format == "parquet" else {**FORMAT, "format": self._format}

    def state(self) -> ArchiveState:
        """Return the archive's state after the last committed batch."""
        batches = sorted(int(entry.stem) for entry in self._log.glob("[0-9]*.json"))
        if not batches:
            return ArchiveState()
        entry = json.loads(self._entry(batches[-1]).read_text())
        topics = {
            topic: {int(partition): PartitionTotals(**totals) for partition, totals in partitions.items()}
            for topic, partitions in entry["topics"].items()
        }
        return ArchiveState(batches[-1], topics, entry["topic_ids"])

    def is_committed(self, batch_id: int) -> bool:
        """Return whether the archive contains the batch. If so, Spark is repeating it after a crash."""
        return batch_id <= self.state().batch_id

    def staging_directory(self, batch_id: int) -> Path:
        """Delete this run's staging directory for the batch, if it exists, and return its path."""
        path = self._staging / f"{batch_id}-{self._run}"
        shutil.rmtree(path, ignore_errors=True)
        return path

    def commit(
        self, batch_id: int, files: list[StagedFile], start: Offsets, end: Offsets, topic_ids: dict[str, str]
    ) -> ArchiveState:
        """Publish a batch's staged files, which must be synced and contain only offsets in [start, end).

        Raises RecordsLost if a batch does not continue the archive, or has repeated or out-of-range offsets.
        """
        staging = self._staging / f"{batch_id}-{self._run}"
        staging.mkdir(parents=True, exist_ok=True)
        state = self.state()
        state.batch_id = batch_id
        state.topic_ids |= topic_ids
        add_batch(state.topics, files, start, end)
        sync(staging)
        entry = {
            "staging": staging.name,
            "files": {file.name: file.final_name for file in files},
            "topic_ids": state.topic_ids,
            "topics": {t: {str(p): asdict(v) for p, v in parts.items()} for t, parts in state.topics.items()},
        }
        write_json(self._entry(batch_id), entry)
        self._publish(batch_id, entry)
        self._entry(batch_id - LOG_ENTRIES_KEPT).unlink(missing_ok=True)
        return state

    def _entry(self, batch_id: int) -> Path:
        return self._log / f"{batch_id:012d}.json"

    def _publish(self, batch_id: int, entry: dict[str, Any]) -> None:
        """Complete the publication of a batch (rules 4 and 5), if its staging directory still exists."""
        staging = self._staging / entry["staging"]
        if not staging.is_dir():
            return
        if self._table is None or self._table.last_batch() < batch_id:
            self._rename(staging, entry["files"])
            if self._table is not None:
                self._append(self._table, batch_id, entry)
        shutil.rmtree(staging)

    def _rename(self, staging: Path, files: dict[str, str]) -> None:
        folders = set()
        for staged_name, final_name in files.items():
            staged, final = staging / staged_name, self._files / final_name
            final.parent.mkdir(parents=True, exist_ok=True)
            folders |= {final.parent, final.parent.parent}
            if staged.exists():
                os.replace(staged, final)
            elif not final.exists():
                raise RecordsLost(
                    f"{final} was deleted before its batch was published.",
                    "Archive to a new directory, or restore the file.",
                )
        for folder in folders | {self.directory}:
            sync(folder)

    def _append(self, table: ArchiveTable, batch_id: int, entry: dict[str, Any]) -> None:
        """Append the batch to the table. The commit's properties are the batch's number and end offsets."""
        files, schema = table_files(self._files, entry["files"].values())
        ends = {t: {p: totals["end"] for p, totals in parts.items()} for t, parts in entry["topics"].items()}
        offsets = json.dumps(ends, separators=(",", ":"))
        properties = {f"{APPLICATION}.batch": str(batch_id), f"{APPLICATION}.end-offsets": offsets}
        table.append(batch_id, files, schema, properties)


def add_batch(
    totals: dict[str, dict[int, PartitionTotals]], files: list[StagedFile], start: Offsets, end: Offsets
) -> None:
    """Add a batch's files to the totals, in place. Raises RecordsLost like `ArchiveStore.commit`."""
    from kafka_compat.pipelines.offset_runs import gaps_in, merged

    by_partition: dict[tuple[str, int], list[Any]] = {}
    for file in files:
        by_partition.setdefault((file.topic, file.partition), []).append(file.runs)
    for topic, partitions in end.items():
        for partition, stop in partitions.items():
            known = totals.setdefault(topic, {}).get(partition)
            begin = start.get(topic, {}).get(partition, known.end if known else 0)
            if known is None:
                known = totals[topic][partition] = PartitionTotals(begin, begin)
            if begin != known.end:
                raise RecordsLost(
                    f"{topic}-{partition}: the batch begins at {begin}, but the archive ends at {known.end}.",
                    "The topic may have been recreated, or _checkpoint replaced. Archive to a new directory.",
                )
            runs = merged(by_partition.pop((topic, partition), []))
            gaps = gaps_in(runs, begin, stop, GAP_RANGES_KEPT)
            known.end = stop
            known.rows += runs.rows
            known.gaps += gaps.count
            known.gap_ranges = (known.gap_ranges + gaps.ranges)[:GAP_RANGES_KEPT]
            if runs.rows:
                known.first = runs.first[0].as_py() if known.first is None else known.first
                known.last = runs.last[-1].as_py()
    if by_partition:
        raise RecordsLost(f"Records of partitions outside of the batch were read: {sorted(by_partition)}.")
