"""The compose files in the documentation: the settings that their services get."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafka_compat.config import BrokerConfig, load
from tests.support.servers import PROJECT

yaml: Any = pytest.importorskip("yaml")
OWN = PROJECT / "image" / "root" / "etc" / "kafka-compat" / "server.properties"
PAGES = ("image.md", "clusters.md")


def _files(page: str) -> list[dict[str, Any]]:
    """Return the page's compose files whose brokers are nodes of a quorum."""
    text = (PROJECT / "docs" / page).read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(block) for block in blocks if "KAFKA_PROCESS_ROLES" in block]


FILES = [(page, number) for page in PAGES for number in range(len(_files(page)))]


@pytest.mark.parametrize(("page", "number"), FILES)
def test_the_nodes_of_a_compose_file_find_each_other(page: str, number: int) -> None:
    services = _files(page)[number]["services"]
    nodes: dict[str, BrokerConfig] = {}
    for name, service in services.items():
        given = {key: str(value) for key, value in (service.get("environment") or {}).items()}
        if "KAFKA_PROCESS_ROLES" in given:
            nodes[name] = load([str(OWN)], (), given)
    assert nodes
    ports: dict[tuple[str, int], int] = {}
    for name, config in nodes.items():
        assert config.unknown == () and config.ignored_kraft == ()
        quorum = config.quorum
        assert quorum is not None
        ports |= {(name, each.port): quorum.node_id for each in quorum.listeners}
        for listener, (host, port) in config.advertised_listeners.items():
            bound = next(each for each in config.listeners if each.name == listener)
            assert (host, port) == (name, bound.port) or host == "localhost"
        published = [each.split(":") for each in services[name].get("ports", ())]
        outside = {port for host, port in config.advertised_listeners.values() if host == "localhost"}
        assert {int(port) for _, port, _ in published} == outside
    assert len({config.broker_id for config in nodes.values()}) == len(nodes)
    for config in nodes.values():
        assert config.quorum is not None
        assert {address: node_id for node_id, address in config.quorum.voters.items()} == ports


def test_the_pages_contain_a_node_alone_three_combined_nodes_and_three_of_each_role() -> None:
    assert [len(_files(page)) for page in PAGES] == [1, 2]
