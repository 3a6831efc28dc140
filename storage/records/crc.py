"""CRC-32C, the checksum of record batches, from the C extension of the `crc32c` package.

Importing the package also imports its command line and distribution metadata, which takes 20 to 30 ms, a
tenth of the startup budget. Therefore only the extension is loaded. If the extension is not found, the
package is imported.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType

Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load_extension() -> ModuleType | None:
    package = PathFinder.find_spec("crc32c")
    if package is None or not package.submodule_search_locations:
        return None
    spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    module = spec.loader.create_module(spec)
    if module is not None:
        spec.loader.exec_module(module)
    return module


def _find() -> Checksum:
    found: Checksum | None = getattr(_load_extension(), "crc32c", None)
    if found is None:
        import crc32c

        found = crc32c.crc32c
    return found


crc32c = _find()
