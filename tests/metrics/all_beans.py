"""The MBeans of Apache Kafka, those that this project exports, and those that the documentation lists as not
exported.

An MBean with a name is written as `kafka.server:type=T,name=N`, regardless of its tags. For an MBean without
a name, each attribute is written as `kafka.server:type=T,attribute=a`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from prometheus_client.parser import text_string_to_metric_families

from tests.metrics.jmx_agent import INVENTORY, Agent
from tests.support.servers import PROJECT

_PAGE = PROJECT / "docs" / "monitoring.md"
_SECTION = "### What is left out"


def of_genuine(agent: Agent) -> set[str]:
    """Return all MBeans that Apache Kafka currently has."""
    found = set()
    for family in text_string_to_metric_families(agent.told(INVENTORY, lowercase_labels=False)):
        for sample in family.samples:
            if sample.name == "inventory":
                found.add(_named(sample.labels["bean"], sample.labels["attribute"]))
    return found


def of_ours(text: str) -> set[str]:
    """Return the MBeans in a scrape of this project's broker, from the help texts."""
    found = set()
    for told in re.findall(r"^# HELP \S+ (kafka\.\S+:type=\S+)$", text, re.MULTILINE):
        domain, _, rest = told.partition(":type=")
        types, _, name = rest.partition(",")
        found |= {f"{domain}:type={each},{name}" for each in types.split("|")}
    return found


def in_help(text: str) -> dict[str, str]:
    """Map each metric family of the JMX exporter to its MBean."""
    told = re.findall(r"^# HELP (kafka_\S+) .* (kafka\.\S+:\S+)$", text, re.MULTILINE)
    found = {}
    for family, bean in told:
        domain, _, properties = bean.partition(":")
        values = dict(each.split("=", 1) for each in properties.split(","))
        name = values["name"]
        rest = f"attribute={values['attribute']}" if name == "null" else f"name={name}"
        found[family] = f"{domain}:type={values['type']},{rest}"
    return found


def left_out() -> list[str]:
    """Return the patterns in the table of MBeans that are not exported."""
    section = _PAGE.read_text().partition(f"{_SECTION}\n")[2].partition("\n#")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [pattern for row in rows for pattern in re.findall(r"`(kafka\.[^`]+)`", row)]


def is_left_out(bean: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(bean, pattern) for pattern in patterns)


def _named(bean: str, attribute: str) -> str:
    domain, _, rest = bean.partition(":")
    properties = dict(each.split("=", 1) for each in re.split(r", (?=[\w-]+=)", rest))
    name = properties.get("name")
    return f"{domain}:type={properties['type']}," + (f"name={name}" if name else f"attribute={attribute}")
