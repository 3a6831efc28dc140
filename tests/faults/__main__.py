"""Runs a schedule of faults and prints its table: `python -m tests.faults [--quorum KIND] [--faults N]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults import schedule
from tests.faults.cluster import FaultCluster
from tests.faults.quorum_cluster import QuorumFaultCluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--genuine", action="store_true", help="Apache Kafka 3.9.1 instead of ours")
    parser.add_argument("--secured", action="store_true", help="enable security (tests/support/secured.py)")
    parser.add_argument("--quorum", choices=("combined", "separate"), help="a metadata quorum")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--only", choices=schedule.QUORUM_KINDS, help="inject only faults of this kind")
    parser.add_argument("--session-timeout-ms", type=int, default=6000)
    parser.add_argument("--request-timeout-ms", type=int, default=5000)
    parser.add_argument("--keep", type=Path, help="keep logs and data in this directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        directory = options.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        session_timeout_ms = options.session_timeout_ms
        with (
            FaultCluster(
                directory,
                genuine=options.genuine,
                session_timeout_ms=session_timeout_ms,
                secured=options.secured,
            )
            if options.quorum is None
            else QuorumFaultCluster(
                directory, session_timeout_ms=session_timeout_ms, separate=options.quorum == "separate"
            )
        ) as cluster:
            plan = schedule.faults if options.quorum is None else schedule.quorum_faults
            planned = plan(options.faults, options.only)
            request_timeout_ms = options.request_timeout_ms
            run = schedule.run(
                cluster,
                planned,
                directory,
                request_timeout_ms=request_timeout_ms,
                tell=lambda line: print(line, flush=True),
            )
    print(run.table())
    return 0 if run.findings.nothing and not any(run.given_up.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
