"""kafka-compat security: create certificates, users and settings for a broker with TLS, SASL and ACLs."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.cli import arguments

if TYPE_CHECKING:
    from kafka_compat.security.provision import Provision

EXIT_USAGE: Final = 2
_PORT: Final = 9093
_DAYS: Final = 825
"""Validity of a broker's certificate in days. Some systems reject a longer validity."""


def add_parser(subparsers: Any) -> None:
    """Add the `security` subcommand to the command line."""
    parser = subparsers.add_parser(
        "security",
        help="create certificates, users and settings for a broker with TLS",
        description="Set up a broker with TLS, authentication and authorization.",
    )
    commands = parser.add_subparsers(dest="security_command", metavar="COMMAND", required=True)
    init = commands.add_parser(
        "init",
        help="create the files for a secure broker in a directory",
        description="Create in DIR a certificate authority, a broker's certificate, server.properties, "
        "users with random passwords, and client files for each user. The files are readable only by you.",
        epilog="exit codes: 0 if all files were created; 1 if a file cannot be written; "
        "2 if an argument is invalid, or files already exist",
    )
    init.add_argument("folder", metavar="DIR", type=_folder, help="directory, created if missing")
    help = (
        "host name or address of the broker for clients; may be repeated, in which case the first is "
        "advertised (default: localhost, with the broker listening on 127.0.0.1 only)"
    )
    arguments.add_several(init, "--host", "NAME", help)
    help = f"the broker's port (default: {_PORT})"
    init.add_argument("--port", type=arguments.port, default=_PORT, metavar="N", help=help)
    help = (
        "advertised address (default: the first --host, and --port). Repeat the option for each broker "
        "to create its settings and certificate"
    )
    arguments.add_several(init, "--advertised", "HOST:PORT", help)
    help = "user to create in addition to admin, with only the permissions that ACLs grant; may be repeated"
    arguments.add_several(init, "--user", "NAME", help)
    init.add_argument("--zookeeper", metavar="CONNECT", help="value of zookeeper.connect for the brokers")
    help = f"validity of certificates in days (default: {_DAYS})"
    init.add_argument("--days", type=_days, default=_DAYS, metavar="N", help=help)
    help = "replace existing files; brokers and clients then need the new files"
    init.add_argument("--force", action="store_true", help=help)
    init.add_argument(
        "--json", action="store_true", help="print the created files as JSON, without passwords"
    )


def run(args: argparse.Namespace) -> int:
    """Create the files, and return the exit code."""
    from datetime import UTC, datetime

    from kafka_compat.security.provision import Address, Wish, WishError, checked_host, provide

    folder = args.folder
    obstacle = _obstacle(folder)
    if obstacle is not None:
        return _refuse(f"{folder} cannot be written: {obstacle}. Choose another directory", 1)
    try:
        hosts = tuple(checked_host(host) for host in args.host)
        advertised = tuple(Address.parse(text) for text in args.advertised) or (
            Address(hosts[0] if hosts else "localhost", args.port),
        )
        elsewhere = bool(hosts or args.advertised)
        wish = Wish(
            folder,
            advertised,
            hosts if elsewhere else _names_of_this_machine(),
            tuple(args.user),
            args.days,
            elsewhere,
            args.zookeeper,
        )
        provision = provide(wish, datetime.now(UTC))
    except WishError as error:
        return _refuse(str(error), EXIT_USAGE)
    there = [path for path in provision.files if (folder / path).exists()]
    if there and not args.force:
        return _refuse(
            f"{folder} has {', '.join(map(str, sorted(there)[:3]))}{' and more' if there[3:] else ''} "
            "already; choose another directory, or use --force, which invalidates the certificates and "
            "passwords in use",
            EXIT_USAGE,
        )
    try:
        _write(folder, provision.files)
    except OSError as error:
        return _refuse(f"{error.filename or folder} cannot be written: {error.strerror or error}", 1)
    if args.json:
        print(json.dumps(_as_json(folder, provision), indent=2))
    else:
        _show(folder, provision)
    return 0


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError(
            "the name of the directory is empty; use . for the current directory"
        )
    return Path(os.path.abspath(text))


def _obstacle(folder: Path) -> str | None:
    """Return why `folder` cannot be created or written, as far as can be seen without trying it."""
    for path in (folder, *folder.parents):
        if path.is_dir():
            return None if os.access(path, os.W_OK | os.X_OK) else f"no permission to write {path}"
        if os.path.lexists(path):
            return f"{path} is not a directory"
    return None


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 36500:
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of days; expected 1 to 36500")
    return int(text)


def _names_of_this_machine() -> tuple[str, ...]:
    from kafka_compat.security.provision import WishError, checked_host

    try:
        return (checked_host(socket.gethostname()),)
    except WishError:
        return ()


def _write(folder: Path, files: dict[PurePath, bytes]) -> None:
    """Write each file atomically, never readable by other users."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path, content in files.items():
        target = folder / path
        for parent in reversed(target.relative_to(folder).parents):
            (folder / parent).mkdir(exist_ok=True, mode=0o700)
        new = target.with_name(f".{target.name}.new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, target)


def _next_steps(folder: Path, provision: Provision) -> list[tuple[str, str]]:
    admin = folder / provision.clients["admin"]
    steps = [
        ("start the broker", shlex.join(["kafka-compat", "serve", str(folder / server)]))
        for server in provision.servers
    ]
    talk = ["kafka-compat", "topics", "--bootstrap-server", provision.bootstrap, "--list"]
    talk += ["--command-config", str(admin / "client.properties")]
    steps.append(("connect to it", shlex.join(talk)))
    others = [user for user in provision.clients if user != "admin"]
    if others:
        allow = ["kafka-compat", "acls", "--bootstrap-server", provision.bootstrap]
        allow += ["--command-config", str(admin / "client.properties"), "--add"]
        allow += ["--allow-principal", f"User:{others[0]}", "--producer", "--consumer"]
        allow += ["--topic", "TOPIC", "--group", "*"]
        steps.append((f"grant permissions to {others[0]}", shlex.join(allow)))
    return steps


def _as_json(folder: Path, provision: Provision) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "bootstrap_servers": provision.bootstrap,
        "server_properties": [str(folder / server) for server in provision.servers],
        "authority": str(folder / "ca.pem"),
        "clients": {user: str(folder / path) for user, path in provision.clients.items()},
        "files": [str(folder / path) for path in provision.files],
        "next": [{"to": what, "command": command} for what, command in _next_steps(folder, provision)],
    }


def _show(folder: Path, provision: Provision) -> None:
    """Print every path in full, whatever the width of the terminal: users copy the paths."""
    files = [("settings of the broker", str(server)) for server in provision.servers]
    files.append(("CA certificate, which clients trust", "ca.pem"))
    files.append(("private key of the CA: store it elsewhere", "ca.key"))
    for user, path in provision.clients.items():
        permissions = "all permissions" if user == "admin" else "no permissions yet"
        files.append((f"client files of {user} ({permissions})", str(path)))
    width = max(len(content) for content, _ in files)
    for content, name in files:
        print(f"{content:{width}}  {folder / name}")
    print("\nOnly the client files contain the users' passwords.\n")
    for number, (purpose, command) in enumerate(_next_steps(folder, provision), 1):
        print(f"{number}. {purpose}:")
        print(f"   {command}")


def _refuse(message: str, code: int) -> int:
    print(f"kafka-compat security: {message}", file=sys.stderr)
    return code
