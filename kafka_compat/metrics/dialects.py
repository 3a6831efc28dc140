"""Names of Kafka's metrics in Prometheus, following the JMX exporter's rules. No I/O.

The names of Kafka's MBeans in Prometheus depend on the exporter's rules. Two sets of rules are common, and
dashboards and alerts are written for one of them:

jmx-exporter  the exporter's own example, kafka-2_0_0.yml, which Strimzi's rules extend:
              kafka_server_brokertopicmetrics_messagesin_total
confluent     Confluent's jmx-monitoring-stacks, whose names Grafana Cloud also uses:
              kafka_server_brokertopicmetrics_messagesinpersec
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_compat.metrics.family import COUNTER, GAUGE, UNTYPED

SETTING: Final = "kafka.compat.metrics.dialect"

Tags = Mapping[str, str]
"""Properties of an MBean other than its type and name."""
NO_TAGS: Final[Tags] = {}


class Bean(NamedTuple):
    """A Kafka MBean, such as `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec`."""

    domain: str
    """The domain, without the prefix `kafka.`."""
    type: str
    name: str

    @property
    def help(self) -> str:
        return f"kafka.{self.domain}:type={self.type},name={self.name}"


class Series(NamedTuple):
    """The name and the type of a metric family."""

    name: str
    kind: str


class Dialect(ABC):
    """Rules for the names, types and labels of metrics."""

    @abstractmethod
    def gauges(self, bean: Bean) -> tuple[Series, ...]:
        """Return the series for a gauge."""

    @abstractmethod
    def counters(self, bean: Bean) -> tuple[Series, ...]:
        """Return the series for a counter."""

    @abstractmethod
    def quantiles(self, bean: Bean) -> Series:
        """Return the series for a distribution, with one sample per value of the label `quantile`."""

    @abstractmethod
    def socket(self, attribute: str) -> Series:
        """Return the series for a listener's attribute in kafka.server:type=socket-server-metrics."""

    def attribute(self, type_name: str, attribute: str) -> Series:
        """Return the series for an attribute of an MBean without a name, such as
        kafka.server:type=group-coordinator-metrics. If no rule matches, the exporter's default name applies.
        """
        return Series(f"kafka_server_{type_name}_{attribute}".lower().replace("-", "_"), GAUGE)

    raft_state_label = "state"
    """Label that contains the text of current-state in kafka.server:type=raft-metrics."""

    def raft(self, attribute: str) -> Series:
        """Return the series for an attribute of kafka.server:type=raft-metrics."""
        return self.attribute("raft-metrics", attribute)

    @abstractmethod
    def quota(self, resource: str, attribute: str, client: Tags) -> tuple[Series, Tags]:
        """Return a quota's series and labels, such as kafka.server:type=Produce,user=U,client-id=C."""

    @abstractmethod
    def label(self, tag: str) -> str:
        """Return the label name for an MBean property."""

    def socket_label(self, tag: str) -> str:
        """Return the label name for an MBean property of socket-server-metrics."""
        return self.label(tag)

    @property
    @abstractmethod
    def idle(self) -> Series:
        """Series of the recent idle ratio of request handlers, from 0 to 1."""


def _plain(bean: Bean) -> str:
    domain = bean.domain.replace(".", "_")
    return f"kafka_{domain}_{bean.type}_{bean.name}".lower().replace("-", "_")


def _attribute(name: str) -> str:
    return name.replace("-", "_")


class JmxExporter(Dialect):
    """The JMX exporter's example rules, as applied by its version 1.0 and later: the names of all counters
    end with _total. Percentages are also reported under the names in Strimzi's rules.
    """

    def gauges(self, bean: Bean) -> tuple[Series, ...]:
        name = _plain(bean)
        if bean.name.endswith("Percent"):
            return Series(name, GAUGE), Series(name.removesuffix("percent") + "_percent", GAUGE)
        return (Series(name, GAUGE),)

    def counters(self, bean: Bean) -> tuple[Series, ...]:
        name = _plain(bean)
        if name.endswith("persec"):
            return (Series(name.removesuffix("persec") + "_total", COUNTER),)
        return (Series(f"{name}_count_total", COUNTER),)

    def quantiles(self, bean: Bean) -> Series:
        return Series(_plain(bean), GAUGE)

    def socket(self, attribute: str) -> Series:
        kind = COUNTER if attribute.endswith("_total") else GAUGE
        return Series(f"kafka_server_socket_server_metrics_{attribute}", kind)

    raft_state_label = "current_state"

    def raft(self, attribute: str) -> Series:
        # The rules for KRaft, also Strimzi's, name the MBean as one word.
        kind = UNTYPED if attribute == "current-state" else GAUGE
        return Series(f"kafka_server_raftmetrics_{_attribute(attribute)}", kind)

    def quota(self, resource: str, attribute: str, client: Tags) -> tuple[Series, Tags]:
        # Follow the second rule of kafka-2_0_0.yml: its first rule parses `Produce, user=U` as the resource.
        named = {"clientId" if tag == "client-id" else tag: value for tag, value in client.items()}
        return Series(f"kafka_server_quota_{_attribute(attribute)}", GAUGE), {"resource": resource, **named}

    def label(self, tag: str) -> str:
        return tag.replace("-", "_")

    @property
    def idle(self) -> Series:
        return Series("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", GAUGE)


_SOCKET_LABELS: Final = {
    "networkProcessor": "network_processor",
    "clientSoftwareName": "client_software_name",
    "clientSoftwareVersion": "client_software_version",
}


class Confluent(Dialect):
    """Rules of jmx-monitoring-stacks: Kafka's names in lower case, and types only for partitions' metrics."""

    def gauges(self, bean: Bean) -> tuple[Series, ...]:
        of_partition = bean.domain == "cluster" or bean.type in ("Log", "FetcherLagMetrics")
        return (Series(_plain(bean), GAUGE if of_partition else UNTYPED),)

    def counters(self, bean: Bean) -> tuple[Series, ...]:
        return (Series(_plain(bean), UNTYPED),)

    def quantiles(self, bean: Bean) -> Series:
        return Series(_plain(bean), UNTYPED)

    def socket(self, attribute: str) -> Series:
        name = "connections" if attribute == "connections_software" else attribute
        return Series(f"kafka_server_socketservermetrics_{name.removesuffix('_total')}", GAUGE)

    def quota(self, resource: str, attribute: str, client: Tags) -> tuple[Series, Tags]:
        name = f"kafka_server_{resource.lower()}_{_attribute(attribute)}"
        return Series(name, GAUGE), {self.label(tag): value for tag, value in client.items()}

    def label(self, tag: str) -> str:
        return tag.replace("-", "_").lower()

    def socket_label(self, tag: str) -> str:
        return _SOCKET_LABELS.get(tag, tag)

    @property
    def idle(self) -> Series:
        name = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate"
        return Series(name, GAUGE)


DIALECTS: Final[Mapping[str, Dialect]] = {"jmx-exporter": JmxExporter(), "confluent": Confluent()}
