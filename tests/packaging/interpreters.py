"""Other Python versions: the ones on this machine, and 3.14 from a newer Debian in a chroot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import kafka_jars

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions in setup.cfg's classifiers."""

_PACKAGES = "python3,python3-venv,python3-dev,gcc,libc6-dev"
_SUITE = "forky"


def found() -> dict[str, str]:
    """Return the working interpreters on the PATH or installed by pyenv, by version, except the current
    version.
    """
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
    # Version managers also install shims for versions that are not selected.
    asked = [interpreter, "-c", "import venv, ensurepip"]
    return subprocess.run(asked, capture_output=True, timeout=60).returncode == 0


class Debian:
    """A chroot with a Debian whose Python is 3.14."""

    def __init__(self) -> None:
        self.root = kafka_jars.cache_directory() / f"debian-{_SUITE}"

    @staticmethod
    def missing() -> str:
        """Return the reason why the chroot cannot be created, or an empty string."""
        if os.geteuid() != 0:
            return "debootstrap and chroot need root"
        lacking = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name) is None]
        return f"needs {' and '.join(lacking)}" if lacking else ""

    def make(self) -> None:
        """Create the chroot, unless an earlier run did."""
        if (self.root / "usr" / "bin" / "python3.14").exists():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        partly = self.root.with_suffix(".part")
        shutil.rmtree(partly, ignore_errors=True)
        partly.parent.mkdir(parents=True, exist_ok=True)
        line = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(partly)]
        made = subprocess.run(
            # One script bootstraps all suites, but an older debootstrap knows it only as `sid`.
            [*line, "http://deb.debian.org/debian", "sid"],
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
        partly.rename(self.root)

    def run(self, *line: str, timeout_s: float = 1200) -> str:
        """Run a command in the chroot, which must succeed, and return its output. The chroot gets this
        machine's DNS settings and certificates, so that it can reach the package index.
        """
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
        # The mounts are private to the command, and are removed when it exits.
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
