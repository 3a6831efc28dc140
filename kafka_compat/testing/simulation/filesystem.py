"""In-memory disk that, in a crash, may lose any data that POSIX allows a disk to lose.

Written and durable state are separate, for bytes and for names:

- A file's bytes are durable after `sync`. A crash keeps any subset of the 512-byte sectors written since; a
  lost sector within the kept length reads as zeros or as its previous content. Truncations are kept in order,
  up to a random one.
- A name (created, renamed, removed) is durable after `sync_directory` of its directory. A crash keeps a
  prefix of the later changes, as a journal does, but separately for each directory. Syncing a file does not
  make its name durable.

`crash_at` is the number of the I/O step that does not complete: a write is torn, and any other step happens
completely or not at all. Afterwards, every call raises `Crash`, which no `except OSError` can catch.
`after_crash` is the disk at the next startup.
"""

import itertools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_compat.storage.filesystem import Buffer, temporary_name

SECTOR_SIZE_BYTES = 512
_changes = itertools.count(1)
"""Source of unique modification times."""


class Crash(BaseException):
    """Simulated power failure."""


@dataclass(eq=False)
class Inode:
    """A file. Programs see `content`. A crash keeps `durable`, and some of the later `changes`."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    changes: list[tuple[int, bytes] | int] = field(default_factory=list)
    """Changes since the last sync: (position, bytes) for a write, the new size for a truncation."""
    modified_ms: int = 0
    links: int = 1
    changed_ns: int = field(default_factory=_changes.__next__)

    def write(self, position: int, data: bytes) -> None:
        self.changed_ns = next(_changes)
        if position > len(self.content):
            self.content += bytes(position - len(self.content))
        self.content[position : position + len(data)] = data
        self.changes.append((position, data))

    def truncate(self, size_bytes: int) -> None:
        self.changed_ns = next(_changes)
        del self.content[size_bytes:]
        self.content += bytes(size_bytes - len(self.content))
        self.changes.append(size_bytes)

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.changes.clear()

    def torn(self, chance: random.Random) -> "Inode":
        """Return the file as it is after a crash."""
        mode = chance.random()
        if mode < 0.2 or not self.changes:
            content = bytearray(self.durable)
        elif mode < 0.4:
            content = bytearray(self.content)
        else:
            content = bytearray(self.durable)
            truncations = sum(isinstance(change, int) for change in self.changes)
            truncations_kept = chance.randint(0, truncations)
            sector_kept = chance.random()
            for change in self.changes:
                if isinstance(change, int):
                    if truncations_kept:
                        truncations_kept -= 1
                        del content[change:]
                        content += bytes(change - len(content))
                else:
                    _write_some_sectors(content, *change, sector_kept, chance)
            # Choose the file size separately, because it may become durable before or after the bytes.
            if len(content) > len(self.durable) and chance.random() < 0.5:
                size_bytes = chance.randint(len(self.durable), len(content))
                del content[size_bytes:]
        return Inode(content, bytes(content), [], self.modified_ms, changed_ns=self.changed_ns)


def _write_some_sectors(
    content: bytearray, position: int, data: bytes, kept: float, chance: random.Random
) -> None:
    end = position + len(data)
    if end > len(content):
        content += bytes(end - len(content))
    at = position
    while at < end:
        sector_end = min(end, (at // SECTOR_SIZE_BYTES + 1) * SECTOR_SIZE_BYTES)
        if chance.random() < kept:
            content[at:sector_end] = data[at - position : sector_end - position]
        at = sector_end


@dataclass(eq=False)
class Folder:
    """A directory: the names visible to programs, the durable names, and the states between them."""

    names: "dict[str, Inode | Folder]" = field(default_factory=dict)
    history: "list[dict[str, Inode | Folder]]" = field(default_factory=lambda: [{}])
    """The durable names first, then the names after each later change."""
    changed_ns: int = field(default_factory=_changes.__next__)

    def changed(self) -> None:
        self.changed_ns = next(_changes)
        self.history.append(dict(self.names))

    def sync(self) -> None:
        self.history = [dict(self.names)]

    def torn(self, chance: random.Random) -> "Folder":
        kept = chance.choice((self.history[0], self.history[-1], chance.choice(self.history)))
        names = {name: entry.torn(chance) for name, entry in kept.items()}
        return Folder(names, [dict(names)], self.changed_ns)


class SimulatedFile:
    """An open file, which remains usable after its name is removed, as on a real disk."""

    def __init__(self, filesystem: "SimulatedFilesystem", inode: Inode) -> None:
        self._filesystem = filesystem
        self._inode = inode

    def write(self, data: Buffer) -> int:
        content = bytes(data)
        inode, filesystem = self._inode, self._filesystem
        room = filesystem.room_bytes
        if room is not None:
            content = content[:room]
            filesystem.room_bytes = room - len(content)
            if not content:
                raise OSError(28, "No space left on device")
        torn_bytes = filesystem.chance.randint(0, len(content))
        torn = content[:torn_bytes]
        filesystem.step(lambda: inode.write(len(inode.content), torn))
        inode.write(len(inode.content), content)
        inode.modified_ms = filesystem.now_ms
        return len(content)

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._filesystem.check()
        return bytes(self._inode.content[position : position + size_bytes])

    def sync(self) -> None:
        self._filesystem.step(self._inode.sync, syncs=True)
        self._inode.sync()

    def truncate(self, size_bytes: int) -> None:
        self._filesystem.step(lambda: self._inode.truncate(size_bytes))
        self._inode.truncate(size_bytes)

    def reserve(self, position: int, size_bytes: int) -> None:
        """Do nothing, because a reservation has no visible effect."""

    def size(self) -> int:
        self._filesystem.check()
        return len(self._inode.content)

    def fileno(self) -> int:
        raise OSError("a simulated file has no descriptor")


class SimulatedLock:
    """A file lock that is held until it is released or a crash happens."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimulatedFilesystem:
    """A simulated file system. `room_bytes` is the free space. With `failing_syncs`, syncs fail with EIO."""

    def __init__(self, chance: random.Random, root: Folder | None = None) -> None:
        self.chance = chance
        self.steps = 0
        self.crash_at: int | None = None
        self.crashed = False
        self.now_ms = 0
        self.room_bytes: int | None = None
        self.failing_syncs = False
        self._root = root or Folder()
        self._locks: set[str] = set()
        self._boots = 0

    def after_crash(self) -> "SimulatedFilesystem":
        """Return the disk after a power failure."""
        found = SimulatedFilesystem(self.chance, self._root.torn(self.chance))
        found.now_ms = self.now_ms
        found._boots = self._boots + 1
        return found

    def after_kill(self) -> "SimulatedFilesystem":
        """Return the disk after the process is killed (kill -9): all written data survives."""
        found = SimulatedFilesystem(self.chance, self._root)
        found.now_ms = self.now_ms
        return found

    # --- steps

    def check(self) -> None:
        """Raise Crash if the crash has happened."""
        if self.crashed:
            raise Crash

    def step(self, half_done: Callable[[], None], *, syncs: bool = False) -> None:
        """Count an I/O step. At step `crash_at`, call `half_done` with probability 1/2, and raise Crash."""
        self.check()
        if syncs and self.failing_syncs:
            raise OSError(5, "Input/output error")
        self.steps += 1
        if self.steps == self.crash_at:
            if self.chance.random() < 0.5:
                half_done()
            self.crashed = True
            raise Crash

    # --- paths

    def _find(self, path: str) -> Inode | Folder | None:
        self.check()
        entry: Inode | Folder | None = self._root
        for name in path.strip("/").split("/"):
            if not isinstance(entry, Folder):
                return None
            entry = entry.names.get(name)
        return entry

    def _folder(self, path: str) -> Folder:
        entry = self._find(path) if path.strip("/") else self._root
        if not isinstance(entry, Folder):
            raise FileNotFoundError(path)
        return entry

    def _file(self, path: str) -> Inode:
        entry = self._find(path)
        if not isinstance(entry, Inode):
            raise FileNotFoundError(path)
        return entry

    def _parent(self, path: str) -> tuple[Folder, str]:
        parent, name = os.path.split(path)
        return self._folder(parent), name

    def _change_names(self, folder: Folder, change: Callable[[], object]) -> None:
        def apply() -> None:
            change()
            folder.changed()

        self.step(apply)
        apply()

    # --- interface of storage.filesystem.Filesystem

    def open(self, path: str) -> SimulatedFile:
        return SimulatedFile(self, self._file(path))

    def create(self, path: str) -> SimulatedFile:
        folder, name = self._parent(path)
        inode = Inode(modified_ms=self.now_ms)
        self._change_names(folder, lambda: folder.names.update({name: inode}))
        return SimulatedFile(self, inode)

    def read_file(self, path: str) -> bytes:
        return bytes(self._file(path).content)

    def write_file(self, path: str, content: Buffer) -> None:
        found = self._find(path)
        if isinstance(found, Inode) and found.links > 1:
            self.unlink(path)
        if isinstance(self._find(path), Inode):
            file = self.open(path)
            file.truncate(0)
        else:
            file = self.create(path)
        view = memoryview(content)
        while view:
            written_bytes = file.write(view)
            view = view[written_bytes:]

    def write_file_atomically(self, path: str, content: Buffer) -> None:
        temporary = temporary_name(path)
        self.write_file(temporary, content)
        self.sync_file(temporary)
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def sync_file(self, path: str) -> None:
        self.open(path).sync()

    def sync_directory(self, path: str) -> None:
        folder = self._folder(path)
        self.step(folder.sync, syncs=True)
        folder.sync()

    def rename(self, source: str, target: str) -> None:
        folder, old = self._parent(source)
        other, new = self._parent(target)
        assert folder is other, "the log store renames within one folder only"
        if old not in folder.names:
            raise FileNotFoundError(source)

        def change() -> None:
            folder.names[new] = folder.names.pop(old)

        self._change_names(folder, change)

    def link(self, source: str, target: str) -> None:
        inode = self._file(source)
        folder, name = self._parent(target)
        self._change_names(folder, lambda: folder.names.update({name: inode}))
        inode.links += 1

    def unshare(self, path: str) -> None:
        found = self._find(path)
        if isinstance(found, Inode) and found.links > 1:
            found.links -= 1
            self.write_file_atomically(path, bytes(found.content))

    def unlink(self, path: str) -> None:
        folder, name = self._parent(path)
        found = folder.names.get(name)
        if isinstance(found, Inode):
            found.links -= 1
        if name in folder.names:
            self._change_names(folder, lambda: folder.names.pop(name))

    def mkdir(self, path: str) -> None:
        folder = self._root
        for name in path.strip("/").split("/"):
            entry = folder.names.get(name)
            if entry is None:
                new = Folder()
                self._change_names(folder, lambda f=folder, n=name, e=new: f.names.update({n: e}))  # type: ignore[misc]
                entry = new
            if not isinstance(entry, Folder):
                raise FileExistsError(path)
            folder = entry

    def rmdir(self, path: str) -> None:
        folder, name = self._parent(path)
        if self._folder(path).names:
            raise OSError(39, "Directory not empty", path)
        self._change_names(folder, lambda: folder.names.pop(name))

    def listdir(self, path: str) -> list[str]:
        return list(self._folder(path).names)

    def boot_id(self) -> str:
        return f"boot {self._boots}"

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def file_size(self, path: str) -> int:
        return len(self._file(path).content)

    def stamp(self, path: str) -> tuple[int, int]:
        entry = self._find(path)
        if entry is None:
            raise FileNotFoundError(path)
        return len(entry.content) if isinstance(entry, Inode) else 0, entry.changed_ns

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file(path).modified_ms = modified_ms

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def lock(self, path: str) -> SimulatedLock | None:
        self.check()
        if path in self._locks:
            return None
        self._locks.add(path)
        return SimulatedLock(self._locks, path)
