"""Python with another version of pyspark: the packages of the running Python, except for pyspark."""

import sysconfig
from pathlib import Path

from tests.packaging.wheels import Installed
from tests.support.kafka_jars import cache_directory

VERSIONS = ("4.0.0", "4.1.1", "4.2.0")


def python_with(version: str) -> Path:
    """Return the path of a Python with this version of pyspark, in a virtual environment of its own. The
    environment is kept in the cache.
    """
    folder = cache_directory() / f"pyspark-{version}"
    ready = folder / "ready"
    if not ready.exists():
        Installed(folder, f"pyspark=={version}")
        ready.touch()
    # The packages of the running Python come after those of the environment, so its pyspark hides the other.
    (site,) = folder.glob("lib/python*/site-packages")
    others = sysconfig.get_path("purelib")
    (site / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n")
    return folder / "bin" / "python"
