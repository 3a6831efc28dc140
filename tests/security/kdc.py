"""An MIT Kerberos KDC for tests, with its own directory and port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from tests.support.ports import free_port
from tests.support.process import wait_until

REALM = "TEST.EXAMPLE"

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def missing() -> str | None:
    """Return the reason why a KDC cannot run on this machine, or None if it can."""
    try:
        import gssapi  # noqa: F401
    except ImportError:
        return "gssapi is not installed (pip install kafka-compat[kerberos])"
    for program in ("krb5kdc", "kadmin.local", "kdb5_util", "kinit"):
        if shutil.which(program, path=_PATH) is None:
            return f"{program} is not installed (apt-get install krb5-kdc krb5-admin-server krb5-user)"
    return None


class Kdc:
    """A KDC. `start` creates its database. `environment` has the variables that its clients need."""

    def __init__(self, directory: Path, ticket_lifetime_s: int = 86_400) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = free_port()
        self.configuration = directory / "krb5.conf"
        self._process: subprocess.Popen[bytes] | None = None
        self.configuration.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f" ticket_lifetime = {ticket_lifetime_s}s\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        profile = directory / "kdc.conf"
        profile.write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n"
            f"  key_stash_file = {directory}/stash\n  acl_file = {directory}/acl\n"
            "  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal\n }\n"
        )
        self.environment = {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(profile),
            "KRB5CCNAME": f"FILE:{directory}/cache",
            "KRB5RCACHENAME": f"file2:{directory}/replays",
        }

    def start(self) -> None:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        program = shutil.which("krb5kdc", path=_PATH)
        assert program is not None
        with (self.directory / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen([program, "-n"], env=self._whole(), stdout=log, stderr=log)
        wait_until(self._answers, 20, "the KDC accepts connections", 0.05)

    def environment_of(self, name: str) -> dict[str, str]:
        """The environment of one of several servers, with a replay cache as on a separate machine."""
        return {**self.environment, "KRB5RCACHENAME": f"file2:{self.directory}/replays-{name}"}

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def key_table(self, principal: str) -> Path:
        """Add a principal in the realm, and return its new keytab."""
        file = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}@{REALM}")
        self._run("kadmin.local", "-q", f"ktadd -k {file} {principal}@{REALM}")
        return file

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _whole(self) -> dict[str, str]:
        return {**os.environ, "PATH": _PATH, **self.environment}

    def _run(self, *line: str) -> None:
        done = subprocess.run(line, env=self._whole(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
