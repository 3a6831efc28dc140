"""Startup errors of the serve command, and the check that a broker responds."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def refusal(*arguments: str) -> str:
    """Run serve, which must exit with 2, and return its error message."""
    result = subprocess.run(
        [sys.executable, "-m", "kafka_compat", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=PROJECT,
    )
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("kafka-compat serve: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


def api_versions_error(port: int) -> int:
    """Send ApiVersions version 0, and return the error code of the response."""
    body = struct.pack(">hhih", 18, 0, 7, -1)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        answer = connection.recv(4096)
    correlation_id, error = struct.unpack(">ih", answer[4:10])
    assert correlation_id == 7
    return int(error)
