"""Parts that kafka-consumer-groups and kafka-share-groups have in common."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import Failure, of_client
from kafka_compat.tools.options import Options

TIMEOUT_MS: Final = 30_000


def run_action(noun: str, options: Options, act: Callable[[Cluster, Options], None]) -> int:
    """Connect to the cluster, run an action, and return the exit code, which is 0 even if the action fails.
    `noun` is the kind of groups in the error message. Raises Failure if a flag is invalid.
    """
    cluster: Cluster | None = None
    try:
        cluster = _cluster(options)
        act(cluster, options)
    except Exception as error:
        failure = of_client(error)
        if failure.kind == "java.lang.IllegalArgumentException":
            options.usage_error(failure.message or "")
        print_error(f"Executing {noun} command failed due to {failure.message}", options)
        sys.stdout.flush()
        print(failure.trace, end="", file=sys.stderr)
    finally:
        if cluster is not None:
            cluster.close()
    return 0


def _cluster(options: Options) -> Cluster:
    try:
        found = cluster_of(options)
    except Failure as failure:
        if not failure.kind.startswith("java."):
            raise
        raise Failure("java.lang.RuntimeException", str(failure), failure) from None
    found.timeout_s = (options.integer("timeout", 64) or TIMEOUT_MS) / 1000
    return found


def print_error(message: str, options: Options) -> None:
    print(f"\nError: {message}", file=options.errors)


def check_available(options: Options, only_with: Mapping[str, Sequence[str]]) -> None:
    """Raise Failure if a flag is given without any of its actions. `only_with` maps flags to actions."""
    for name, actions in only_with.items():
        if options.has(name) and not any(map(options.has, actions)) and not options.has("help"):
            text = f"Option(s) [{name}] are unavailable given other options on the command line"
            raise Failure("joptsimple.UnavailableOptionException", text)
