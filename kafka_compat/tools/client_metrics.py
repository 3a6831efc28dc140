"""kafka-client-metrics: configure the metrics that clients push (KIP-714)."""

import os
from base64 import urlsafe_b64encode
from typing import Any, Final

from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.config_resources import CLIENT_METRICS, alter_resource, configs_of, names_of
from kafka_compat.tools.failure import illegal_argument, log, of_client, report
from kafka_compat.tools.options import Options, java_integer

_ACTIONS: Final = ("alter", "delete", "describe", "list")
_OF_ALTER: Final = ("generate-name", "interval", "match", "metrics")
_LOGGER: Final = "org.apache.kafka.tools.ClientMetricsCommand"


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    options = Options.or_usage("client-metrics", arguments, lists=("metrics", "match"))
    try:
        _check(options)
        settings = settings_of(options)
    except Exception as error:
        return report(of_client(error))
    try:
        with connected(options.given("bootstrap-server"), settings) as cluster:
            (action,) = filter(options.has, _ACTIONS)
            actions = {"alter": _alter, "describe": _describe, "delete": _delete, "list": _list}
            actions[action](cluster, options)
    except Exception as error:
        found = of_client(error)
        found = found.cause or found if found.kind.endswith(".ExecutionException") else found
        print(f"Error while executing client metrics command : {found.message}", file=options.errors)
        log("ERROR", found.trace, _LOGGER)
        return 1
    return 0


def _check(options: Options) -> None:
    options.exit_for_help()
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage_error("Specify one action: --alter, --delete, --describe or --list.")
    if not options.has("bootstrap-server"):
        raise illegal_argument("--bootstrap-server must be specified.")
    options.forbid("delete", *_OF_ALTER)
    options.forbid("describe", *_OF_ALTER)
    options.forbid("list", "name", *_OF_ALTER)
    if options.has("alter"):
        if options.has("name") == options.has("generate-name"):
            raise illegal_argument("--alter requires --name or --generate-name.")
        interval = options.value("interval")
        if interval:
            try:
                java_integer(interval, "interval")
            except Exception:
                text = "--interval must be an integer, or empty for the default."
                raise illegal_argument(text) from None
    if options.has("delete") and not options.has("name"):
        raise illegal_argument("--delete requires --name.")


def _alter(cluster: Any, options: Options) -> None:
    name = _new_name() if options.has("generate-name") else options.given("name")
    given = {
        "interval.ms": options.values("interval"),
        "metrics": options.values("metrics"),
        "match": options.values("match"),
    }
    values = {key: ",".join(items) for key, items in given.items() if items}
    added = {key: value for key, value in values.items() if value}
    alter_resource(cluster, CLIENT_METRICS, name, added, [key for key in values if key not in added])
    if options.as_json:
        show.as_json({"altered": name})
    else:
        print(f"Altered client metrics config for {name}.")


def _new_name() -> str:
    while True:
        name = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        # Skip names that begin with a dash, because they would be parsed as flags.
        if not name.startswith("-"):
            return name


def _delete(cluster: Any, options: Options) -> None:
    name = options.given("name")
    there = [each.name for each in configs_of(cluster, CLIENT_METRICS, name)]
    alter_resource(cluster, CLIENT_METRICS, name, {}, there)
    if options.as_json:
        show.as_json({"deleted": name})
    else:
        print(f"Deleted client metrics config for {name}.")


def _describe(cluster: Any, options: Options) -> None:
    names = names_of(cluster, CLIENT_METRICS)
    if options.has("name"):
        name = options.given("name")
        if name not in names and not options.as_json:
            print(f"There is no client metrics subscription {name}.")
        names = [name] if name in names else []
    rows = []
    for name in names:
        values = {each.name: each.value for each in configs_of(cluster, CLIENT_METRICS, name, True)}
        if options.as_json:
            rows.append({"name": name, "configs": values})
            continue
        print(f"Client metrics configs for {name} are:")
        for key in show.java_order(values, show.java_hash):
            print(f"  {key}={values[key]}")
    if options.as_json:
        show.as_json(rows)


def _list(cluster: Any, options: Options) -> None:
    names = names_of(cluster, CLIENT_METRICS)
    if options.as_json:
        show.as_json(names)
    else:
        print("\n".join(names))
