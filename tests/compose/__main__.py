"""The second part of scripts/compose-test, once the images exist: start the cluster, run the checks, stop the
cluster, print a summary."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.compose import checks
from tests.compose.docker import Cluster


class Steps:
    """Prints each step and its duration."""

    def __init__(self) -> None:
        self._took: list[tuple[str, float]] = []

    def run(self, title: str, step: Callable[[], str | None]) -> None:
        """Run one step. Any exception ends the run."""
        print(f"-- {title} …", flush=True)
        started = time.monotonic()
        told = step()
        seconds = time.monotonic() - started
        self._took.append((title, seconds))
        print(f"   ok in {seconds:.1f} s{': ' + told if told else ''}", flush=True)

    def summary(self) -> str:
        lines = [f"{seconds:7.1f} s  {title}" for title, seconds in self._took]
        return "\n".join([*lines, f"{sum(seconds for _, seconds in self._took):7.1f} s  in all"])


def main() -> int:
    """Run all steps, and return the exit code: 0 if everything passed."""
    parser = argparse.ArgumentParser(prog="scripts/compose-test", description=__doc__)
    parser.add_argument("--broker-image", required=True)
    parser.add_argument("--zookeeper-image", required=True)
    parser.add_argument("--keep", action="store_true", help="leave the cluster running after a failure")
    parser.add_argument("-k", metavar="EXPRESSION", help="client tests to run, as for pytest")
    options = parser.parse_args()
    cluster = Cluster(options.broker_image, options.zookeeper_image)
    steps = Steps()
    chosen = ["-k", options.k] if options.k else []
    passed = False
    try:
        steps.run("ZooKeeper and three brokers start and become healthy", cluster.up)
        steps.run("settings, users and topics", lambda: checks.settings(cluster))
        steps.run("a client inside the network", lambda: checks.client_inside(cluster))
        steps.run("the client suite from the host", lambda: checks.client_suite(cluster, chosen))
        steps.run("brokers are lost under load", lambda: checks.losing_brokers(cluster))
        steps.run("the data outlive the containers", lambda: checks.data_outlive_containers(cluster))
        passed = True
    except Exception as failure:
        print(f"FAILED: {failure}\n{cluster.logs()}", file=sys.stderr)
    finally:
        if passed or not options.keep:
            steps.run("everything is taken down", lambda: cluster.down(volumes=True))
    print(steps.summary())
    print("PASSED" if passed else "FAILED")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
