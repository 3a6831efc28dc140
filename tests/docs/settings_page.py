"""The text of docs/settings.md, generated from the tables of settings: the purpose and effect of each
setting.

No I/O: `page()` returns the text, and `python -m tests.docs.write` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafka_compat.config.authorizer import ALLOW_IF_NO_ACL, SUPER_USERS
from kafka_compat.config.broker_table import BROKER_TABLE
from kafka_compat.config.documentation import about
from kafka_compat.config.group import BROKER_SETTINGS, group_keys
from kafka_compat.config.keys import ConfigKey, broker_keys, dynamic_only_keys, topic_keys
from kafka_compat.config.own_settings import OWN_DEFAULTS
from kafka_compat.config.topic_table import SERVER_SYNONYMS

OWN_PREFIX = "kafka.compat."

OF_THE_MACHINE = {
    "log.dir": "`~/.local/share/kafka-compat/logs`",
    "queued.max.request.bytes": "128 MiB, at most 1/8 of the memory",
    "kafka.compat.queued.max.response.bytes": "64 MiB, at most 1/16 of the memory",
}
"""Defaults that are computed at startup."""

UPDATES = {
    "read-only": "restart",
    "per-broker": "dynamic, per broker",
    "cluster-wide": "dynamic",
    "dynamic": "dynamic",
}

WHY_STORED: Mapping[str, str] = {
    "remote.": "Tiered storage (KIP-405) is not supported.",
    "log.local.": "Tiered storage (KIP-405) is not supported.",
    "local.": "Tiered storage (KIP-405) is not supported.",
    "group.share.max.groups": "Kafka 4 has no limit on the number of share groups.",
    "share.coordinator.append.": "Records of share-partitions are written without delay.",
    "group.coordinator.append.": "Records of groups are written without delay.",
    "group.coordinator.rebalance.": "The feature group.version enables the consumer protocol: see "
    "[operate.md](operate.md#feature-levels).",
    "early.start.listeners": "Listeners accept clients after startup.",
    "initial.broker.registration.timeout.ms": "A broker waits for the quorum until it is stopped.",
    "password.encoder.": "Passwords cannot be set dynamically, so they are not encrypted.",
    "metric": "Metrics are served over HTTP: see [monitoring.md](monitoring.md).",
    "offsets.load.buffer.size": "Offsets are loaded in blocks of a fixed size.",
    "offsets.commit.required.acks": "Offset commits always wait for all in-sync replicas.",
    "create.topic.policy": "The broker does not load Java classes.",
    "alter.config.policy": "The broker does not load Java classes.",
    "principal.builder.class": "The broker does not load Java classes.",
    "security.providers": "The broker does not load Java classes.",
    "ssl.engine.factory.class": "The broker does not load Java classes.",
    "sasl.client.callback": "The broker does not load Java classes.",
    "sasl.login.class": "The broker does not load Java classes.",
    "client.quota.callback": "The broker does not load Java classes.",
    "alter.log.dirs.replication.quota.": "Rate limits for moves between log directories do not use samples.",
    "control.plane.listener.name": "The controller uses the inter-broker listener.",
    "eligible.leader.replicas.enable": "Leaders are elected with the rules of Kafka 3.9 with ZooKeeper.",
    "kafka.metrics.": "Metrics are served over HTTP: see [monitoring.md](monitoring.md).",
    "log.dir.failure.timeout.ms": "Failed log directories are reported through the metadata store.",
    "replica.socket.receive.buffer.bytes": "The operating system chooses the buffer size.",
    "sasl.kerberos.": "Tickets are obtained from the keytab when needed.",
    "sasl.login.": "Token requests have a fixed timeout.",
    "socket.connection.setup.": "Connections between brokers have a fixed timeout.",
    "socket.listen.backlog.size": "The backlog is always 512 connections.",
    "zookeeper.max.in.flight.requests": "The broker sends at most 100 concurrent requests to ZooKeeper.",
    "preallocate": "Segment files grow as they are written.",
    "log.preallocate": "Segment files grow as they are written.",
}
"""The reason why a setting is only stored, by prefix of its name."""

_HEAD = """\
# Settings

This page lists every setting, its default, and whether it has an effect. It is generated from the broker's
own tables by `python -m tests.docs.write`: do not edit it.

Settings have Kafka's names, types, rules and, with few exceptions, defaults. They are read from properties
files, from environment variables (with `--env`, `KAFKA_LOG_RETENTION_MS` sets `log.retention.ms`) and from
`--override NAME=VALUE`; the last source takes precedence. An invalid value aborts startup with an error
message that contains the setting, the value and the valid values. Some settings can also be changed at
runtime:

```sh
kafka-compat serve server.properties --override log.retention.hours=48
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --describe --broker 1 --all   # with sources
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --alter --topic orders \\
    --add-config retention.ms=3600000                  # dynamically, for one topic
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --alter --broker-defaults \\
    --add-config log.retention.ms=3600000              # dynamically, for all other topics, on all brokers
```

The **Here** column shows the effect of a setting:

| Here | |
|---|---|
| **works** | as in Kafka 3.9 |
| not needed | accepted for compatibility; applies to threads, buffers or libraries that this broker lacks |
| stored only | validated, stored and reported, but has no effect; the broker logs this at startup |

Unknown settings are ignored; the broker logs them, with a suggestion if a name is mistyped.

The **Change** column shows when a new value takes effect: *restart* requires a restart of the broker;
*dynamic* settings are changed with `kafka-compat configs --alter` and take effect immediately, for all
brokers or *per broker*. Settings of the type *password* (see the **Value** column) cannot be changed
dynamically.
"""


def page() -> str:
    """Return the text of the page."""
    keys = {name: key for name, key in broker_keys().items() if key.update != "internal"}
    kafkas = {name: key for name, key in keys.items() if not name.startswith(OWN_PREFIX)}
    return "\n".join(
        [
            _HEAD,
            "## Settings of kafka-compat\n",
            "Kafka does not have these settings. See also [logs.md](logs.md),",
            "[monitoring.md](monitoring.md), [security.md](security.md), [clusters.md](clusters.md),",
            "[testing.md](testing.md).\n",
            _table((key for key in keys.values() if key.name.startswith(OWN_PREFIX)), broker=True),
            "## Defaults that differ from Kafka's\n",
            "With these defaults, `kafka-compat serve` needs no settings and accepts only local clients.\n",
            _differences(),
            "## Brokers\n",
            _counts(kafkas.values(), broker=True),
            _table(sorted(kafkas.values()), broker=True),
            "## Brokers, dynamic only\n",
            "Set these settings with `kafka-compat configs --alter --broker N`, or in a properties file.\n",
            _table(dynamic_only_keys().values(), broker=True),
            "## The authorizer\n",
            "These settings apply if `authorizer.class.name` is set ([acls.md](acls.md)):\n",
            "| Setting | Default | Here | Description |\n|---|---|---|---|",
            f"| `{SUPER_USERS}` | none | **works** | Principals with all rights: `User:NAME;User:NAME`. |",
            f"| `{ALLOW_IF_NO_ACL}` | `false` | **works** | "
            "Whether all principals may access resources without ACLs. |\n",
            "## Settings of one listener\n",
            "These settings can be set for one listener, as `listener.name.NAME.SETTING`, or for one of its",
            "SASL mechanisms, as `listener.name.NAME.MECHANISM.SETTING`. Write both names in lower case.\n",
            ", ".join(f"`{name}`" for name in sorted(_of_listeners())) + ".\n",
            "## Topics\n",
            _counts(topic_keys().values(), broker=False),
            _table(sorted(topic_keys().values()), broker=False),
            "## Groups\n",
            "These settings override the broker's settings for one group. A value outside the broker's",
            "limits (such as `group.consumer.min.…` and `group.share.max.…`) is rejected.\n",
            "```sh\nkafka-compat configs --bootstrap-server 127.0.0.1:9092 --alter --entity-type groups \\\n"
            "    --entity-name readers --add-config consumer.session.timeout.ms=50000\n```\n",
            _table(sorted(group_keys().values()), broker=False),
        ]
    ).replace("\n\n\n", "\n\n")


def state(key: ConfigKey, *, broker: bool) -> str:
    """Return the effect of the setting, in the terms of the page's introduction."""
    words = {"unneeded": "not needed", "stored": "stored only"}
    return words.get(key.effect, "**works**")


def _of_listeners() -> list[str]:
    return [name for name, key in broker_keys().items() if key.effect == "listener"]


def _counts(keys: Iterable[ConfigKey], *, broker: bool) -> str:
    states = [state(key, broker=broker) for key in keys]
    told = ", ".join(
        f"{one.strip('*')}: {states.count(one)}"
        for one in ("**works**", "not needed", "stored only")
        if one in states
    )
    return f"{len(states)} settings ({told}).\n"


def _table(keys: Iterable[ConfigKey], *, broker: bool) -> str:
    head = "| Setting | Value | Default | Here | Change | Description |\n|---|---|---|---|---|---|\n"
    return head + "".join(_row(key, broker=broker) for key in keys)


def _row(key: ConfigKey, *, broker: bool) -> str:
    where = state(key, broker=broker)
    means = about(key.name) or ""
    if where == "stored only":
        means = next((why for name, why in WHY_STORED.items() if key.name.startswith(name)), means)
    synonyms = "" if broker else ", ".join(f"`{name}`" for name in _broker_settings(key.name))
    if synonyms:
        means = f"{means} Broker-wide default: {synonyms}.".strip()
    cells = (f"`{key.name}`", _value(key), _default(key), where, UPDATES[key.update], means)
    return f"| {' | '.join(cells)} |\n"


def _broker_settings(name: str) -> tuple[str, ...]:
    """Return the broker settings with the default of a topic or group setting."""
    if name in BROKER_SETTINGS:
        default = BROKER_SETTINGS[name].default
        return () if default is None else (default,)
    return SERVER_SYNONYMS.get(name, ())


def _value(key: ConfigKey) -> str:
    text = key.expected.partition(", for example")[0].removeprefix("expected ")
    kinds = {"a whole number": key.type, "a number": key.type, "text": key.type}
    text = re.sub("^(a whole number|a number|text)", lambda found: kinds[found[0]], text)
    return text.replace("|", "\\|")


def _default(key: ConfigKey) -> str:
    if key.name in OF_THE_MACHINE:
        return OF_THE_MACHINE[key.name]
    if key.default is None:
        return "none"
    return f"`{key.default}`" if key.default else "empty"


def _differences() -> str:
    kafkas = dict(re.findall(r"^(\S+) \S+ (\S+) ", BROKER_TABLE, re.MULTILINE))
    keys = broker_keys()
    lines = "".join(
        f"| `{name}` | {_default(keys[name])} | `{kafkas[name]}` |\n" for name in (*OWN_DEFAULTS,)
    )
    return f"| Setting | Here | Kafka |\n|---|---|---|\n{lines}"
