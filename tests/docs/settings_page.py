"""docs/settings.md, made from the tables of settings: what each is, and whether it does something here.

Pure: `page()` is the text. `python -m tests.docs.write` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafka_compat.config.authorizer import ALLOW_IF_NO_ACL, SUPER_USERS
from kafka_compat.config.broker_config import is_of_kraft
from kafka_compat.config.broker_table import BROKER_TABLE
from kafka_compat.config.documentation import about
from kafka_compat.config.keys import ConfigKey, broker_keys, dynamic_only_keys, topic_keys
from kafka_compat.config.own_settings import OWN_DEFAULTS
from kafka_compat.config.topic_table import SERVER_SYNONYMS

OWN_PREFIX = "kafka.compat."

OF_THE_MACHINE = {
    "log.dir": "`~/.local/share/kafka-compat/logs`",
    "queued.max.request.bytes": "128 MiB, at most 1/8 of the memory",
    "kafka.compat.queued.max.response.bytes": "64 MiB, at most 1/16 of the memory",
}
"""Defaults that are made when the broker starts."""

UPDATES = {
    "read-only": "at start",
    "per-broker": "running, each broker",
    "cluster-wide": "running",
    "dynamic": "running",
}

WHY_STORED: Mapping[str, str] = {
    "remote.": "Tiered storage (KIP-405) is not built.",
    "log.local.": "Tiered storage (KIP-405) is not built.",
    "local.": "Tiered storage (KIP-405) is not built.",
    "group.consumer.": "The consumer group protocol of KIP-848 is not built.",
    "group.share.": "Share groups (KIP-932) are not built.",
    "group.coordinator.": "Of Kafka's new coordinator; the classic protocol is served.",
    "early.start.listeners": "KRaft.",
    "zookeeper.metadata.migration": "Migration to KRaft.",
    "password.encoder.": "Passwords are not changed while the broker runs.",
    "metric": "Metrics are asked for over HTTP: [monitoring.md](monitoring.md).",
    "inter.broker.protocol.version": "Brokers speak the protocol of 3.9 among themselves; genuine "
    "ones beside them need 3.9 here.",
    "compression.": "Batches that the broker compresses anew have the codec's default level.",
    "offsets.load.buffer.size": "Loading reads by blocks of its own.",
    "offsets.commit.required.acks": "Commits wait for all in-sync replicas, Kafka's default.",
    "create.topic.policy": "Nothing loads classes by name.",
    "alter.config.policy": "Nothing loads classes by name.",
    "principal.builder.class": "Nothing loads classes by name.",
    "security.providers": "Nothing loads classes by name.",
    "ssl.engine.factory.class": "Nothing loads classes by name.",
    "sasl.client.callback": "Nothing loads classes by name.",
    "sasl.login.class": "Nothing loads classes by name.",
    "client.quota.callback": "Nothing loads classes by name.",
    "alter.log.dirs.replication.quota.": "Moves between folders are limited by a rate alone.",
    "control.plane.listener.name": "The controller's requests come by the listener between brokers.",
    "eligible.leader.replicas.enable": "KRaft.",
    "kafka.metrics.": "Metrics are asked for over HTTP: [monitoring.md](monitoring.md).",
    "log.dir.failure.timeout.ms": "KRaft.",
    "replica.socket.receive.buffer.bytes": "The operating system sizes it.",
    "request.timeout.ms": "Requests between brokers have `controller.socket.timeout.ms` and "
    "`replica.socket.timeout.ms`.",
    "sasl.kerberos.": "Tickets are taken from the keytab when they are needed.",
    "sasl.login.": "The request for a token has a limit of its own.",
    "sasl.mechanism.controller.protocol": "KRaft.",
    "socket.connection.setup.": "Connections between brokers have a limit of their own.",
    "socket.listen.backlog.size": "The backlog is the operating system's.",
    "zookeeper.max.in.flight.requests": "Requests are sent as they come.",
    "preallocate": "Segments grow as they are written.",
    "log.preallocate": "Segments grow as they are written.",
}
"""By how a setting's name begins: why it is stored only."""

_HEAD = """\
# Settings

Made from the broker's own tables by `python -m tests.docs.write`: do not edit.

Settings have Kafka's names, types, rules and, but for a few, Kafka's defaults. They come from properties
files, from variables (`--env`: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`) and from
`--override NAME=VALUE`; the last wins. A value that is wrong ends the start, with its name, its value and
what would be right:

```sh
kafka-compat serve server.properties --override log.retention.hours=48
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --describe --broker 1 --all   # what counts, and why
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --alter --topic orders \\
    --add-config retention.ms=3600000                  # while it runs, for a topic
kafka-compat configs --bootstrap-server 127.0.0.1:9092 --alter --broker-defaults \\
    --add-config log.retention.ms=3600000              # while it runs, for all others, on all brokers
```

What a setting does here:

| Here | |
|---|---|
| **works** | as in Kafka 3.9 |
| not needed | what it tunes does not exist here (threads, buffers, Java's libraries); nothing is said of it |
| stored only | it is checked, kept and shown, and does nothing; the log says so at the start |
| ignored | it belongs to KRaft, or to a Kafka that is newer; the log says so at the start |

A name that nobody knows is ignored, and the log says so and guesses which one was meant.
When a change counts:
*at start* needs a restart; *running* counts at once (`kafka-compat configs --alter`),
for all brokers or for each of them.
"""


def page() -> str:
    """The whole page."""
    keys = {name: key for name, key in broker_keys().items() if key.update != "internal"}
    kafkas = {name: key for name, key in keys.items() if not name.startswith(OWN_PREFIX)}
    return "\n".join(
        [
            _HEAD,
            "## Its own settings\n",
            "Kafka has none of these. More: [logs.md](logs.md), [monitoring.md](monitoring.md),",
            "[security.md](security.md), [clusters.md](clusters.md), [testing.md](testing.md).\n",
            _table((key for key in keys.values() if key.name.startswith(OWN_PREFIX)), broker=True),
            "## Defaults other than Kafka's\n",
            "So that `kafka-compat serve` is of use on a bare machine, and not for strangers.\n",
            _differences(),
            "## Brokers\n",
            _counts(kafkas.values(), broker=True),
            _table(sorted(kafkas.values()), broker=True),
            "## Brokers, while they run\n",
            "A file may not hold these; `kafka-compat configs --alter --broker N` sets them.\n",
            _table(dynamic_only_keys().values(), broker=True),
            "## The authorizer\n",
            "With `authorizer.class.name` ([acls.md](acls.md)):\n",
            "| Setting | Default | Here | |\n|---|---|---|---|",
            f"| `{SUPER_USERS}` | none | **works** | `User:NAME;User:NAME`: who may do everything. |",
            f"| `{ALLOW_IF_NO_ACL}` | `false` | **works** | Whether anybody may do what no ACL is about. |\n",
            "## One listener alone\n",
            "These may be given to one listener, as `listener.name.NAME.SETTING`, in small letters",
            "(and those of a mechanism as `listener.name.NAME.MECHANISM.SETTING`):\n",
            ", ".join(f"`{name}`" for name in sorted(_of_listeners())) + ".\n",
            "## Topics\n",
            _counts(topic_keys().values(), broker=False),
            _table(sorted(topic_keys().values()), broker=False),
        ]
    ).replace("\n\n\n", "\n\n")


def state(key: ConfigKey, *, broker: bool) -> str:
    """What the setting does here, in the words of the page's head."""
    if broker and is_of_kraft(key.name):
        return "ignored"
    words = {"unneeded": "not needed", "stored": "stored only"}
    return words.get(key.effect, "**works**")


def _of_listeners() -> list[str]:
    return [name for name, key in broker_keys().items() if key.effect == "listener"]


def _counts(keys: Iterable[ConfigKey], *, broker: bool) -> str:
    states = [state(key, broker=broker) for key in keys]
    told = ", ".join(
        f"{states.count(one)} {one.strip('*')}"
        for one in ("**works**", "not needed", "stored only", "ignored")
        if one in states
    )
    return f"Of {len(states)}: {told}.\n"


def _table(keys: Iterable[ConfigKey], *, broker: bool) -> str:
    head = "| Setting | Value | Default | Here | Change | |\n|---|---|---|---|---|---|\n"
    return head + "".join(_row(key, broker=broker) for key in keys)


def _row(key: ConfigKey, *, broker: bool) -> str:
    where = state(key, broker=broker)
    means = about(key.name) or ""
    if where == "stored only":
        means = next((why for name, why in WHY_STORED.items() if key.name.startswith(name)), means)
    synonyms = "" if broker else ", ".join(f"`{name}`" for name in SERVER_SYNONYMS.get(key.name, ()))
    if synonyms:
        means = f"{means} For all topics: {synonyms}.".strip()
    cells = (f"`{key.name}`", _value(key), _default(key), where, UPDATES[key.update], means)
    return f"| {' | '.join(cells)} |\n"


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
