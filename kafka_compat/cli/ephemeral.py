"""The temporary data directory of a broker. It is deleted when the broker or its parent process exits.

The broker holds a shared lock on the directory, and so does its parent process if it restarts the broker on
the same data. If both are killed at once, the directory remains without a lock, and the same user's next
broker with temporary data removes it.

The parent process holds the other end of the broker's standard input. When the parent exits, even by SIGKILL,
the broker reads the end of the input. A process ID would not be reliable, because IDs are reused, and exit
handlers do not run after SIGKILL.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

PREFIX = "kafka-compat-ephemeral-"
"""Name prefix of temporary data directories. Directories with other names are never removed."""

_INPUT = 0


class EphemeralFolder:
    """A data directory that this object has locked."""

    def __init__(self, path: str | None = None) -> None:
        """Lock the directory at `path`, or a new temporary directory. Raises OSError if the directory is
        missing or cannot be created.
        """
        self._descriptor: int | None = None
        while self._descriptor is None:
            self.path = path if path is not None else _new_folder()
            self._descriptor = _held(self.path, fcntl.LOCK_SH)
            if self._descriptor is None and path is not None:
                raise FileNotFoundError(f"{path} was removed in the meantime")

    @staticmethod
    def is_ours(path: str) -> bool:
        """Return whether the path has the name of a temporary data directory."""
        return os.path.basename(os.path.normpath(path)).startswith(PREFIX)

    def remove(self) -> None:
        """Remove the directory with its contents, and release the lock."""
        _remove(self.path)
        self.let_go()

    def let_go(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def remove_left_over() -> None:
    """Remove this user's temporary data directories that no process has locked."""
    for path in _found():
        with contextlib.suppress(OSError):
            descriptor = _held(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if descriptor is not None:
                try:
                    _remove(path)
                finally:
                    os.close(descriptor)


def end_with_input(folder: EphemeralFolder | None) -> threading.Lock:
    """In a thread, wait for the end of standard input, then remove the directory and exit the process.

    Acquire the returned lock before you exit the process otherwise: the broker may stop because its files
    have disappeared, but the directory must be removed completely.
    """
    exiting = threading.Lock()

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(_INPUT, 4096):
                pass
        with exiting:
            if folder is not None:
                folder.remove()
            os._exit(0)

    threading.Thread(target=watch, name="standard input", daemon=True).start()
    return exiting


def _new_folder() -> str:
    # Import tempfile here, because it imports three compression libraries, which brokers with permanent data
    # do not need.
    import tempfile

    return tempfile.mkdtemp(prefix=PREFIX)


def _found() -> Iterator[str]:
    import tempfile

    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if (
                    entry.name.startswith(PREFIX)
                    and entry.is_dir(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_uid == os.getuid()
                ):
                    yield entry.path


def _held(path: str, how: int) -> int | None:
    """Lock a directory. Return its descriptor, or None if missing. Raises BlockingIOError if it is locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, how)
        is_there = os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path))
    except BaseException:
        os.close(descriptor)
        raise
    if is_there:
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: str) -> None:
    import shutil

    # Rename the directory first, so that no process creates more files in it.
    removed = f"{path}-removed"
    with contextlib.suppress(OSError):
        os.rename(path, removed)
    shutil.rmtree(removed, ignore_errors=True)
