"""Run a node of a metadata quorum that is only a controller (process.roles=controller)."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.cli import log_output
from kafka_compat.cli.foreground import STOP_TIMEOUT_S, Stop, keep_modules
from kafka_compat.cli.http_services import hooks_of

if TYPE_CHECKING:
    import argparse

    from kafka_compat.cli.http_services import HttpServices
    from kafka_compat.config import BrokerConfig

log = logging.getLogger("kafka_compat")


async def serve_controller(
    args: argparse.Namespace, config: BrokerConfig, stop: Stop, http: HttpServices | None
) -> int:
    """Serve until a stop is requested, and return the exit code. Raises StartupError."""
    process = QuorumProcess(config, hooks_of(http, syncs=not args.ephemeral))
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        stop.requested.set()

    process.on_fatal = fail
    try:
        await process.start()
        process.follow_security()
        _tell_ready(args, config, process, http)
        if http is not None:
            http.serve_controller(process)
        keeping = asyncio.ensure_future(keep_modules())
        await stop.requested.wait()
        keeping.cancel()
        log.info("Controller %d is stopping", config.broker_id)
    finally:
        try:
            await asyncio.wait_for(process.stop(), STOP_TIMEOUT_S)
        except TimeoutError:
            log.error("The controller did not stop within %s s", STOP_TIMEOUT_S)
            failed = True
    return 1 if failed else 0


def _tell_ready(
    args: argparse.Namespace, config: BrokerConfig, process: QuorumProcess, http: HttpServices | None
) -> None:
    assert process.listener is not None and config.quorum is not None
    node_id, bound = config.quorum.node_id, process.listener.bound
    url = None if http is None else http.url
    if args.json:
        listeners = {name: {"host": host, "port": port} for name, (host, port) in bound.items()}
        found = {"node_id": node_id, "listeners": listeners, "log_dirs": [config.quorum.metadata_log_dir]}
        log_output.write(json.dumps({"controllers": [found], "http": url}))
    else:
        addresses = ", ".join(
            f"{name}://{f'[{host}]' if ':' in host else host}:{port}" for name, (host, port) in bound.items()
        )
        directory = config.quorum.metadata_log_dir
        log_output.tell(config, f"Controller {node_id} ready on {addresses}, data in {directory}")
        if url is not None:
            log_output.tell(config, f"HTTP on {url}")
    if args.kafka_lines:
        log_output.tell_started(node_id)
