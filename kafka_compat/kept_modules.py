"""Private copy of this package's modules, so that a running broker can import them after an upgrade.

A broker imports most modules when they are first needed, because importing all of them would use a third of
its memory and take longer than its whole startup. `pip install -U` may remove or replace them while the
broker runs. A serving broker therefore copies its package into an unnamed file of about 7 MB, which exists
until the process exits, and imports from it. Apache Kafka keeps its jars open for this reason. Third-party
libraries are not copied.
"""

import asyncio
import contextlib
import logging
import marshal
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import cache_from_source
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

PACKAGE: Final = "kafka_compat"
_NEVER_NEEDED: Final = ("tools", "pipelines", "testing")
"""Packages that a broker does not import."""
_FILES_PER_STEP: Final = 4
_PAUSE_S: Final = 0.002
_PYC_HEADER_BYTES: Final = 16

_log = logging.getLogger(__name__)


class _Kept(NamedTuple):
    path: str
    is_package: bool
    offset: int
    size: int
    is_bytecode: bool


class _Extent(NamedTuple):
    """A byte range of the file that contains the modules."""

    offset: int
    size: int


class KeptModules:
    """Finder and loader (for sys.meta_path and importlib) of the modules in the file open as `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._packages: dict[str, _Extent] = {}
        """Byte ranges of the packages' module lists, which stay in the file because most are never needed."""
        self._extensions: dict[str, _Extent] = {}
        """Byte ranges of the C extensions that are not loaded yet."""
        self._end = 0
        self._index = _Extent(0, 0)

    def keep(self) -> Iterator[None]:
        """Copy the modules in steps of under 1 ms, and then use the copies. Raises OSError if this fails."""
        number = 0
        for package, sources in _sources():
            found = {}
            for name, path in sources:
                found[name] = tuple(self._keep(name, path))
                number += 1
                if number % _FILES_PER_STEP == 0:
                    yield
            self._packages[package] = self._write(marshal.dumps(found))
        self._index = self._write(marshal.dumps({name: tuple(at) for name, at in self._packages.items()}))
        sys.meta_path.insert(0, self)

    def _keep(self, name: str, path: str) -> _Kept:
        data, is_bytecode = _code(path)
        if name not in sys.modules:
            extension = path.removesuffix(".py") + EXTENSION_SUFFIXES[0]
            if os.path.exists(extension):
                with open(extension, "rb") as file:
                    self._extensions[name] = self._write(file.read())
        is_package = os.path.basename(path) == "__init__.py"
        return _Kept(path, is_package, *self._write(data), is_bytecode)

    def _write(self, data: bytes) -> _Extent:
        extent = _Extent(self._end, len(data))
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.descriptor, rest, self._end)
            self._end += written
            rest = rest[written:]
        return extent

    def read(self, extent: _Extent) -> bytes:
        return os.pread(self.descriptor, extent.size, extent.offset)

    def _find(self, name: str) -> _Kept | None:
        extent = self._packages.get(name) or self._packages.get(name.rpartition(".")[0])
        found = extent and marshal.loads(self.read(extent)).get(name)
        return _Kept(*found) if found else None

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command line of a process that inherits the descriptor and runs a copied module."""
        this = self._find(__name__)
        assert this is not None
        place = (self.descriptor, *self._index, this.offset, this.size, int(this.is_bytecode))
        return [sys.executable, "-P", "-c", _IN_A_CHILD, *map(str, place), module, *arguments]

    def open_index(self, offset: int, size: int) -> None:
        """Use the copy that the parent process made. `offset` and `size` locate its index in the file."""
        index = marshal.loads(self.read(_Extent(offset, size)))
        self._packages = {name: _Extent(*at) for name, at in index.items()}
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        kept = self._find(fullname)
        if kept is None:
            return None
        extension = self._extensions.get(fullname)
        if extension is not None:
            from_memory = _ExtensionLoader(fullname, self, extension)
            return ModuleSpec(fullname, from_memory, origin=kept.path, is_package=kept.is_package)
        loader: Any = self
        spec = ModuleSpec(fullname, loader, origin=kept.path, loader_state=kept, is_package=kept.is_package)
        spec.has_location = True
        if kept.is_package:
            spec.submodule_search_locations = [os.path.dirname(kept.path)]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        exec(self._load_code(module.__spec__.loader_state), module.__dict__)

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module for runpy."""
        kept = self._find(fullname)
        if kept is None:
            raise ImportError(f"no copy of module {fullname}", name=fullname)
        return self._load_code(kept)

    def _load_code(self, kept: _Kept) -> CodeType:
        data = self.read(_Extent(kept.offset, kept.size))
        code: CodeType = (
            marshal.loads(data) if kept.is_bytecode else compile(data, kept.path, "exec", dont_inherit=True)
        )
        return code


class _ExtensionLoader(ExtensionFileLoader):
    """Loader of a C extension. It writes the extension to a memory file, because the loader needs a file."""

    _loaded_count = 0

    def __init__(self, name: str, kept_modules: KeptModules, extent: _Extent) -> None:
        super().__init__(name, "")
        self._kept_modules = kept_modules
        self._extent = extent

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        descriptor = os.memfd_create(self.name, os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(self._kept_modules.read(self._extent))
            # The dynamic linker identifies a library by its path, so each path must be unique.
            _ExtensionLoader._loaded_count += 1
            spec.origin = self.path = f"/proc/self/fd/{'./' * _ExtensionLoader._loaded_count}{descriptor}"
            return super().create_module(spec)
        finally:
            os.close(descriptor)


_IN_A_CHILD: Final = """\
import marshal, os, sys, types
fd, index, index_size, at, size, is_bytecode = map(int, sys.argv[1:7])
data = os.pread(fd, size, at)
this = types.ModuleType("kept_modules")
exec(marshal.loads(data) if is_bytecode else compile(data, "kept_modules", "exec"), this.__dict__)
this.KeptModules(fd).open_index(index, index_size)
sys.argv[:] = sys.argv[7:]
import runpy
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def _sources() -> Iterator[tuple[str, Iterator[tuple[str, str]]]]:
    """Yield the packages that a broker may need, each with the names and files of its modules."""
    for folder in sys.modules[PACKAGE].__path__:
        for inside, folders, files in os.walk(folder, followlinks=True):
            parts = os.path.relpath(inside, folder).split(os.sep)
            package = ".".join([PACKAGE, *(part for part in parts if part != os.curdir)])
            # In a checkout, the package's second path is the repository: walk only its two packages.
            if package == PACKAGE and "__init__.py" not in files:
                folders[:] = [name for name in folders if name in ("storage", "coordination")]
                continue
            folders[:] = [name for name in folders if name.isidentifier() and name not in _NEVER_NEEDED]
            yield package, _modules(package, inside, files)


def _modules(package: str, folder: str, files: list[str]) -> Iterator[tuple[str, str]]:
    for file in files:
        if file.endswith(".py"):
            name = package if file == "__init__.py" else f"{package}.{file.removesuffix('.py')}"
            yield name, os.path.join(folder, file)


def _code(path: str) -> tuple[bytes, bool]:
    """Return the code that an import would execute, and whether it is bytecode rather than source."""
    try:
        with open(cache_from_source(path), "rb") as file:
            data = file.read()
        found = os.stat(path)
        expected = (0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
        header = tuple(int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
        if header == expected:
            return data[_PYC_HEADER_BYTES:], True
    except (OSError, NotImplementedError):
        pass
    with open(path, "rb") as file:
        return file.read(), False


kept: KeptModules | None = None
"""The copy made by this process, or None until it is complete."""


async def keep() -> None:
    """Copy the modules of this process in the background."""
    global kept
    if kept is not None:
        return
    descriptor = -1
    try:
        descriptor = _nameless_file()
        keeping = KeptModules(descriptor)
        for _ in keeping.keep():
            await asyncio.sleep(_PAUSE_S)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        _log.info("Could not copy kafka-compat's modules: %s. After an upgrade, restart the broker", error)
        return
    kept = keeping
    _log.debug("Copied kafka-compat's modules (packages: %d)", len(kept._packages))


def _nameless_file() -> int:
    folder = os.environ.get("TMPDIR") or "/tmp"
    if hasattr(os, "O_TMPFILE"):
        # Some file systems do not support O_TMPFILE. Create and unlink a named file instead.
        with contextlib.suppress(OSError):
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    path = os.path.join(folder, f"{PACKAGE}-modules-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return descriptor
