"""Which MBeans genuine Kafka has, which of them we tell of, and which the docs say that we leave out.

An MBean with a name is `kafka.server:type=T,name=N`, whatever its tags; of one without, each attribute is
`kafka.server:type=T,attribute=a`.
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
    """All that it has now."""
    found = set()
    for family in text_string_to_metric_families(agent.told(INVENTORY, lowercase_labels=False)):
        for sample in family.samples:
            if sample.name == "inventory":
                found.add(_named(sample.labels["bean"], sample.labels["attribute"]))
    return found


def of_ours(text: str) -> set[str]:
    """What a scrape of ours tells of, by the helps of its families."""
    found = set()
    for told in re.findall(r"^# HELP \S+ (kafka\.\S+:type=\S+)$", text, re.MULTILINE):
        domain, _, rest = told.partition(":type=")
        types, _, name = rest.partition(",")
        found |= {f"{domain}:type={each},{name}" for each in types.split("|")}
    return found


def in_help(text: str) -> dict[str, str]:
    """The MBeans of the exporter's families, by the names of these."""
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
    """The patterns in the table of the page."""
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
