"""kafka-console-share-consumer: print records of a topic, as a member of a share group."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from kafka_compat.tools import show
from kafka_compat.tools.admin import consuming, parsed, settings_in
from kafka_compat.tools.console_consumer import OLD_NAME, Console, formatter_of
from kafka_compat.tools.failure import Failure, log, of_client
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster

NAME: Final = "console-share-consumer"
"""The client ID, and the group without --group."""
_RENAMED: Final = (("consumer-property", "command-property"), ("consumer-config", "command-config"))
_LOGGER: Final = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
_FOR_EVER_S: Final = 1e9
_OF_GROUPS: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "isolation.level",
    "partition.assignment.strategy",
    "interceptor.classes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)
"""Settings of consumers that share consumers reject, because brokers or groups define them."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    from kafka_compat.client.share_consumer import Acknowledgement, ShareConsumer, share_settings

    options = _options(arguments)
    settings = _settings(options)
    formatter = formatter_of(options)
    how = Acknowledgement.ACCEPT
    if options.has("reject"):
        how = Acknowledgement.REJECT
    elif options.has("release"):
        how = Acknowledgement.RELEASE
    cluster: Cluster | None = None
    try:
        timeout_ms = options.integer("timeout-ms")
        timeout_s = _FOR_EVER_S if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        max_messages = options.integer("max-messages")
        limit = -1 if max_messages is None else max_messages
        _check(settings)
        cluster = consuming(options.given("bootstrap-server"), settings)
        consumer = ShareConsumer(cluster, parsed(share_settings, settings), options.given("topic"))
        console = Console(
            consumer,
            consumer,
            formatter,
            options.has("reject-message-on-error"),
            lambda record, printed: consumer.acknowledge(record, how if printed else Acknowledgement.REJECT),
            _LOGGER,
            cluster.within,
        )
        code = console.run(limit, timeout_s)
        if options.has("enable-systest-events"):
            print("shutdown_complete")
        return code
    except Exception as error:
        log("ERROR", "Unknown error when running consumer: ", _LOGGER)
        print(of_client(error).trace, end="", file=sys.stderr)
        return 1
    finally:
        if cluster is not None:
            cluster.close()


def _options(arguments: list[str]) -> Options:
    options = Options.or_usage(NAME, arguments)
    options.exit_for_help()
    if not options.has("topic"):
        options.usage_error("Specify --topic.")
    options.require("bootstrap-server")
    if options.has("reject") and options.has("release"):
        options.usage_error("--reject and --release exclude each other.")
    return options


def _settings(options: Options) -> dict[str, str]:
    for old, new in _RENAMED:
        options.forbid_together(old, new)
    properties, config = (options.renamed(old, new, OLD_NAME) for old, new in _RENAMED)
    of_file = settings_in(options.given(config)) if options.has(config) else {}
    given = options.pairs(properties)
    named = [options.value("group"), of_file.get("group.id"), given.get("group.id")]
    groups = show.java_order(dict.fromkeys(name for name in named if name is not None), show.java_hash)
    if len(groups) > 1:
        listed = ", ".join(f"'{name}'" for name in groups)
        options.usage_error(
            f"--group, --consumer-property and --consumer-config name different groups: {listed}"
        )
    settings = of_file | given
    settings.setdefault("client.id", NAME)
    settings["group.id"] = groups[0] if groups else NAME
    return settings


def _check(settings: dict[str, str]) -> None:
    """Raise Failure if a setting is unsupported or the group has no name."""
    wrong = [name for name in _OF_GROUPS if name in settings]
    if wrong:
        text = f"Share groups do not support the setting {wrong[0]}"
        raise Failure("org.apache.kafka.common.config.ConfigException", text)
    if not settings["group.id"].strip():
        cause = Failure(
            "org.apache.kafka.common.errors.InvalidGroupIdException",
            "The group.id must not be empty or blank.",
        )
        raise Failure(
            "org.apache.kafka.common.KafkaException", "Failed to construct Kafka share consumer", cause
        )
