"""Journal file of a tree: a snapshot followed by one line per transaction.

Each line consists of the CRC-32 of its text in eight hexadecimal digits, a space, the text (JSON) and a line
feed:

    {"kafka-compat metadata journal": 1, "zxid": 41, "nodes": 2}
    ["/brokers", null, czxid, mzxid, version, children created, owner, ctime, mtime]        one for each node
    …
    [zxid, time in ms, [["create", path, data, owner], ["set", path, data], ["delete", path]], synced]

Data bytes are written as the characters with the same numbers (ISO-8859-1). `synced` is the last transaction
that was known to be on disk when the line was written. After a crash, the first invalid line and all later
lines are removed. If a later line proves that the invalid line had been on disk, the file was damaged in a
different way, and CorruptJournal is raised.

An unacknowledged line that was torn by a crash cannot be distinguished from an acknowledged line that was
truncated later. The removed text is therefore logged in full, and `tail_was_cut` is set, because the tree may
lack acknowledged changes.
"""

import errno
import json
import logging
import os
import zlib
from collections.abc import Iterator
from typing import Any

from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.coordination.store.tree import Node, NodeValues, Tree, split

log = logging.getLogger(__name__)

JOURNAL_NAME = "kafka-compat-metadata.journal"
"""The name of the journal file, which is in the first directory of log.dirs."""

FORMAT = "kafka-compat metadata journal"
COMPACT_BYTES_MIN = 4 * 1024 * 1024
COMPACT_RATIO = 2


class CorruptJournal(MetadataStoreError):
    """A journal that was damaged in a way that a crash cannot cause. The file is not changed."""


class JournalFull(OSError):
    """A write that failed because the disk is full. It had no effect and may be retried."""


class Journal:
    """One journal file. `open` reads the file, and `append` returns when the lines are on disk."""

    def __init__(self, path: str, *, syncs: bool = True) -> None:
        """Without `syncs`, changes survive the process, but not a crash of the machine."""
        self.path = path
        self._syncs = syncs
        self._file = -1
        self._snapshot_bytes = 0
        self._bytes = 0
        self.tail_was_cut = False
        """Whether `open` has removed an unreadable end of the file."""

    def open(self) -> Tree:
        """Read the tree from the file, and remove an incomplete end that a crash left. If the file is
        missing, create it with an empty tree. Raises CorruptJournal or OSError.
        """
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            tree = Tree()
            self.compact(encode_snapshot(tree))
            return tree
        tree, self._snapshot_bytes, self._bytes = decode(data, self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if self._bytes < len(data):
            self.tail_was_cut = True
            log.error(
                "Removed an incomplete change from the end of %s (%d bytes after transaction %d). If the "
                "broker crashed during a write, no action is needed: the change was not acknowledged. "
                "Otherwise, the file was damaged and the change is lost. Removed data: %s",
                self.path,
                len(data) - self._bytes,
                tree.zxid,
                data[self._bytes :].decode(errors="replace").rstrip("\n"),
            )
            os.ftruncate(self._file, self._bytes)
            self._fsync(self._file)
        return tree

    def append(self, lines: bytes) -> None:
        """Write lines from `encode_transaction` durably. Raises JournalFull or another OSError."""
        view = memoryview(lines)
        try:
            while view:
                written_bytes = os.write(self._file, view)
                view = view[written_bytes:]
        except OSError as error:
            os.ftruncate(self._file, self._bytes)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise JournalFull(error.errno, os.strerror(error.errno), self.path) from error
            raise
        self._fsync(self._file)
        self._bytes += len(lines)

    def _fsync(self, file: int) -> None:
        if self._syncs:
            os.fsync(file)

    @property
    def wants_compaction(self) -> bool:
        """Whether the transactions take so much space that the file should be replaced with a snapshot."""
        return self._bytes - self._snapshot_bytes > max(
            COMPACT_BYTES_MIN, COMPACT_RATIO * self._snapshot_bytes
        )

    def compact(self, snapshot: bytes) -> None:
        """Replace the file atomically with a snapshot from `encode_snapshot`. Raises OSError."""
        temporary = self.path + ".new"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(snapshot)
            while view:
                written_bytes = os.write(file, view)
                view = view[written_bytes:]
            self._fsync(file)
            os.replace(temporary, self.path)
        except OSError:
            os.close(file)
            raise
        directory = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
        try:
            self._fsync(directory)
        finally:
            os.close(directory)
        self.close()
        self._file = file
        self._snapshot_bytes = self._bytes = len(snapshot)

    def postpone_compaction(self) -> None:
        """Delay the next compaction as if the compaction that failed had succeeded."""
        self._snapshot_bytes = self._bytes

    def close(self) -> None:
        """Close the file. All appended lines are already on disk."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def encode_transaction(zxid: int, now_ms: int, changes: list[list[Any]], synced: int) -> bytes:
    """Encode one transaction as a line. `changes` is a result of `Tree.apply`."""
    texts = [
        [change[0], change[1], text_of(change[2]), *change[3:]] if len(change) > 2 else change
        for change in changes
    ]
    return _line([zxid, now_ms, texts, synced])


def encode_snapshot(tree: Tree) -> bytes:
    """Encode a tree as a snapshot, parents before their children."""
    lines = [_line({FORMAT: 1, "zxid": tree.zxid, "nodes": len(tree.nodes)})]
    lines += (_line(encode_node(path, tree.nodes[path].values())) for path in sorted(tree.nodes))
    return b"".join(lines)


_decode = json.JSONDecoder().raw_decode
"""JSON decoder, which is called directly because `json.loads` takes 50% longer."""


def decode(data: bytes, name: str) -> tuple[Tree, int, int]:
    """Decode a journal. Return its tree, and the sizes, in bytes, of its snapshot and of its valid lines."""
    lines = _lines(data)
    position, header = next(lines, (0, None))
    if not isinstance(header, dict) or header.get(FORMAT) != 1:
        raise CorruptJournal(f"{name} is not a metadata journal of this version")
    tree = Tree()
    payloads: dict[str, bytes] = {}
    for _ in range(header["nodes"]):
        position, values = next(lines, (0, None))
        if values is None:
            raise CorruptJournal(f"{name} is damaged: a line of its snapshot was changed")
        restore_node(tree, values, payloads)
    tree.zxid = header["zxid"]
    snapshot_bytes = position
    for end, entry in lines:
        if entry is None:
            _refuse_if_it_was_on_disk(lines, tree.zxid, name, position)
            break
        zxid, now_ms, changes, _ = entry
        # Skip transactions that the snapshot already contains: their lines may follow it in the journal.
        if zxid > tree.zxid:
            tree.replay(zxid, now_ms, [_with_bytes(change) for change in changes])
        position = end
    return tree, snapshot_bytes, position


def _refuse_if_it_was_on_disk(
    rest: Iterator[tuple[int, Any]], last_zxid: int, name: str, position: int
) -> None:
    for _, entry in rest:
        if isinstance(entry, list) and entry[-1] > last_zxid:
            raise CorruptJournal(
                f"{name} is damaged at byte {position}: transaction {last_zxid + 1} is unreadable"
            )


def encode_node(path: str, values: NodeValues) -> list[Any]:
    """Encode a node as the items of its line."""
    return [path, text_of(values[0]), *values[1:]]


def restore_node(tree: Tree, values: list[Any], payloads: dict[str, bytes]) -> None:
    """Add a node from `encode_node`, after its parent.

    `payloads` maps encoded data to the object that all nodes with this data share.
    """
    path, text, czxid, mzxid, version, created_children, owner, ctime_ms, mtime_ms = values
    data = None
    if text is not None:
        data = payloads.get(text)
        if data is None:
            data = payloads[text] = text.encode("iso-8859-1")
    node = Node(data, czxid, ctime_ms, owner)
    node.mzxid, node.version, node.mtime_ms = mzxid, version, mtime_ms
    node.created_children = created_children
    tree.nodes[path] = node
    if path != "/":
        parent, name = split(path)
        tree.nodes[parent].adopt(name, node)


def _lines(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the end and the value of each line. The value is None if the line is invalid."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            yield len(data), None
            return
        text = data[start + 9 : end]
        start_of_line, start = start, end + 1
        crc = data[start_of_line : start_of_line + 9]
        yield start, _decode(text.decode())[0] if crc == b"%08x " % zlib.crc32(text) else None


def _line(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def text_of(data: bytes | None) -> str | None:
    """Encode a node's data as text for a journal line."""
    return None if data is None else data.decode("iso-8859-1")


def bytes_of(text: str | None) -> bytes | None:
    """Decode text from `text_of`. Raises ValueError if the text has characters outside ISO-8859-1."""
    return None if text is None else text.encode("iso-8859-1")


def _with_bytes(change: list[Any]) -> list[Any]:
    return [change[0], change[1], bytes_of(change[2]), *change[3:]] if len(change) > 2 else change
