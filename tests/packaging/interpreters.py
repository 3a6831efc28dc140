"""Other versions of Python: those on this machine, and 3.14 of a newer Debian, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import kafka_jars

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""Those of setup.cfg's classifiers."""

_PACKAGES = "python3,python3-venv,python3-dev,gcc,libc6-dev"
_SUITE = "forky"


def found() -> dict[str, str]:
    """Version to interpreter, of those that run here, on the PATH or installed by pyenv, without our own."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    running = {}
    for version in VERSIONS:
        installed = sorted(pyenv.glob(f"{version}*/bin/python{version}"))
        candidates = [shutil.which(f"python{version}"), *installed]
        for candidate in map(str, filter(None, candidates)):
            if version != own and _runs(candidate):
                running[version] = candidate
    return running


def _runs(interpreter: str) -> bool:
    # The shims of a version manager are there for versions that are not selected, too.
    asked = [interpreter, "-c", "import venv, ensurepip"]
    return subprocess.run(asked, capture_output=True, timeout=60).returncode == 0


class Debian:
    """A tree of a Debian whose Python is 3.14, in which commands run as if it were the whole machine."""

    def __init__(self) -> None:
        self.root = kafka_jars.cache_directory() / f"debian-{_SUITE}"

    @staticmethod
    def missing() -> str:
        """Why there can be none, or nothing."""
        if os.geteuid() != 0:
            return "debootstrap and chroot need root"
        lacking = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name) is None]
        return f"needs {' and '.join(lacking)}" if lacking else ""

    def make(self) -> None:
        """Unpack it, unless an earlier run did."""
        if (self.root / "usr" / "bin" / "python3.14").exists():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        partly = self.root.with_suffix(".part")
        shutil.rmtree(partly, ignore_errors=True)
        partly.parent.mkdir(parents=True, exist_ok=True)
        line = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(partly)]
        made = subprocess.run(
            # All suites are unpacked by the same script, which an older debootstrap has for `sid` alone.
            [*line, "http://deb.debian.org/debian", "sid"],
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
        partly.rename(self.root)

    def run(self, *line: str, timeout_s: float = 1200) -> str:
        """Standard output and errors of a command in it that must succeed, with the names and certificates by
        which this machine reaches the index of packages."""
        certificates = os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt")
        for path in ("/etc/resolv.conf", "/etc/hosts", certificates):
            if os.path.isfile(path):
                target = self.root / path.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
        settings = [f"{name}={os.environ[name]}" for name in proxies]
        settings += ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"]
        settings += [f"PIP_CERT={certificates}", "PIP_DEFAULT_TIMEOUT=180"]
        # Its mounts end with the command: they are seen by no other process.
        inside = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" env -i "$@"'
        run = subprocess.run(
            ["unshare", "--mount", "sh", "-c", inside, str(self.root), *settings, *line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
        assert run.returncode == 0, run.stdout
        return run.stdout
