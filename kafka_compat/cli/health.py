"""kafka-compat health: check that a broker on this machine, or each broker of `serve --processes N`,
responds. Used for container health checks.
"""

import argparse
import os
import socket
import struct
import sys
from typing import Any

from kafka_compat.cli import arguments
from kafka_compat.config import ConfigFileError, load
from kafka_compat.config.listeners import Listener

EXIT_UNHEALTHY = 1
EXIT_USAGE = 2

_API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions v0 request with correlation ID 1 and no client ID. It is allowed even before SASL."""

_ANSWER = struct.Struct(">iih")
"""Size, correlation ID and error code at the start of the response."""


def add_parser(subparsers: Any) -> None:
    """Add the `health` subcommand to the command line."""
    parser = subparsers.add_parser(
        "health",
        help="check that a broker on this machine responds",
        description="Send an ApiVersions request to the broker that runs on this machine with these "
        "settings.",
        epilog="exit codes: 0 if the broker responds; 1 if it does not; 2 if the settings are invalid",
    )
    parser.add_argument(
        "properties", nargs="*", metavar="server.properties", help="the broker's settings files"
    )
    arguments.add_override(parser)
    parser.add_argument(
        "--env", action="store_true", help="also read settings from environment variables, like `serve --env`"
    )
    help = "check all brokers of `serve --processes N` or `serve --brokers N`, on N consecutive ports"
    parser.add_argument("--processes", type=arguments.count, default=1, metavar="N", help=help)
    help = "timeout for each broker in seconds (default: 5)"
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help=help)


def run(args: argparse.Namespace) -> int:
    """Check each broker once, and return the exit code."""
    try:
        config = load(args.properties, args.override, os.environ if args.env else None)
    except ConfigFileError as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_USAGE
    listeners = config.listeners or (config.quorum.listeners if config.quorum else ())
    # Prefer a listener without TLS: on TLS listeners, the check only opens a connection.
    listener = next(
        (each for each in listeners if each.security_protocol.endswith("PLAINTEXT")), listeners[0]
    )
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(listener.host, listener.host)
    code = 0
    for port in range(listener.port, listener.port + args.processes):
        try:
            _ask(host, port, listener, args.timeout)
        except (OSError, EOFError, ValueError) as error:
            print(f"kafka-compat: no broker responds at {host}:{port}: {error}", file=sys.stderr)
            code = EXIT_UNHEALTHY
    return code


def _ask(host: str, port: int, listener: Listener, timeout_s: float) -> None:
    with socket.create_connection((host, port), timeout_s) as connection:
        if not listener.security_protocol.endswith("PLAINTEXT"):
            return
        connection.settimeout(timeout_s)
        connection.sendall(_API_VERSIONS_REQUEST)
        with connection.makefile("rb") as stream:
            start = stream.read(_ANSWER.size)
    if len(start) < _ANSWER.size:
        raise EOFError("the connection was closed")
    _, correlation_id, error_code = _ANSWER.unpack(start)
    if (correlation_id, error_code) != (1, 0):
        raise ValueError("the response is not that of a Kafka broker")
