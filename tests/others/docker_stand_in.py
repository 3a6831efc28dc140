"""A `docker` program for suites that control their brokers with `docker compose`: it asks this process."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """\
#!{python}
import json, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as connection:
    connection.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    code, _, output = connection.makefile().read().partition("\\n")
sys.stdout.write(output)
sys.exit(int(code))
"""

Control = Callable[[Sequence[str]], str]
"""Carries out the arguments of one call, and returns its output. Raises ValueError if they are unknown."""


@contextmanager
def docker(directory: Path, control: Control) -> Iterator[Path]:
    """Yield a directory for the PATH whose `docker` calls `control`."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            arguments = json.loads(self.rfile.readline())
            try:
                answer = f"0\n{control(arguments)}"
            except Exception as error:
                answer = f"1\n{' '.join(arguments)}: {error}\n"
            self.wfile.write(answer.encode())

    directory.mkdir(parents=True, exist_ok=True)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        program = directory / "docker"
        program.write_text(_PROGRAM.format(python=sys.executable, port=server.server_address[1]))
        program.chmod(0o755)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield directory
        finally:
            server.shutdown()
