"""Collect samples of Kafka's MBeans into metric families.

Counts of several brokers in one process are summed, as dashboards sum the counts of a cluster's brokers.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kafka_compat.metrics.dialects import NO_TAGS, Bean, Dialect, Series, Tags
from kafka_compat.metrics.family import NO_LABELS, Family, Labels, Sample

QUANTILES: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""Quantiles that Kafka reports for distributions."""


_QUOTAS: Final = {
    "byte-rate": "Produce|Fetch",
    "request-time": "Request",
    "mutation-rate": "ControllerMutation",
    "tokens": "ControllerMutation",
    "throttle-time": "Produce|Fetch|Request|ControllerMutation",
}
"""Maps the attributes of quotas to the types of their MBeans."""


class Beans:
    """The MBean samples of one scrape."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._families: dict[str, tuple[Series, str, list[Sample]]] = {}
        self._sums: dict[tuple[Series, Labels, str], float] = {}

    def gauge(self, bean: Bean, value: float, tags: Tags = NO_TAGS) -> None:
        """Add a gauge: a value that can increase and decrease."""
        for series in self.dialect.gauges(bean):
            self._add(series, bean.help, self._labels(tags), value)

    def counter(self, bean: Bean, value: float, tags: Tags = NO_TAGS) -> None:
        """Add a counter: a count or sum that only increases."""
        for series in self.dialect.counters(bean):
            self._add(series, bean.help, self._labels(tags), value)

    def distribution(self, bean: Bean, count: int, ordered: Sequence[float], tags: Tags = NO_TAGS) -> None:
        """Add a distribution of sorted samples. As in Kafka, all quantiles are 0 if there are no samples."""
        self.counter(bean, count, tags)
        samples = self._samples(self.dialect.quantiles(bean), bean.help)
        named = {self.dialect.label(tag): value for tag, value in tags.items()}
        for quantile in QUANTILES:
            labels = Labels.of({**named, "quantile": quantile})
            samples.append((labels, quantile_of(ordered, float(quantile))))

    def socket(self, attribute: str, value: float, tags: Tags) -> None:
        """Add an attribute of a listener's socket-server-metrics, such as connection-count."""
        labels = Labels.of({self.dialect.socket_label(tag): value for tag, value in tags.items()})
        known_as = attribute.removesuffix("_software").replace("_", "-")
        help_text = f"kafka.server:type=socket-server-metrics,attribute={known_as}"
        self._add(self.dialect.socket(attribute), help_text, labels, value)

    def attribute(self, type_name: str, attribute: str, value: float, tags: Tags = NO_TAGS) -> None:
        """Add an attribute of an MBean without a name, such as type=transaction-coordinator-metrics."""
        series = self.dialect.attribute(type_name, attribute)
        self._add(series, f"kafka.server:type={type_name},attribute={attribute}", self._labels(tags), value)

    def raft(self, attribute: str, value: float) -> None:
        """Add an attribute of kafka.server:type=raft-metrics."""
        help_text = f"kafka.server:type=raft-metrics,attribute={attribute}"
        self._add(self.dialect.raft(attribute), help_text, NO_LABELS, value)

    def raft_state(self, state: str) -> None:
        """Add current-state of kafka.server:type=raft-metrics, a text, as a label of the value 1."""
        help_text = "kafka.server:type=raft-metrics,attribute=current-state"
        labels = Labels.of({self.dialect.raft_state_label: state})
        self._add(self.dialect.raft("current-state"), help_text, labels, 1)

    def quota(self, resource: str, attribute: str, value: float, client: Tags) -> None:
        """Add a quota metric for a client, or for all clients that share the quota."""
        series, labels = self.dialect.quota(resource, attribute, client)
        help_text = f"kafka.server:type={_QUOTAS[attribute]},attribute={attribute}"
        self._add(series, help_text, Labels.of(labels), value)

    def idle(self, share: float) -> None:
        """Add a broker's idle ratio, from 0 to 1."""
        help_text = "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"
        self._add(self.dialect.idle, help_text, NO_LABELS, share)

    def own(self, name: str, kind: str, help_text: str, value: float, labels: Tags = NO_TAGS) -> None:
        """Add a metric that has no MBean in Kafka."""
        self._add(Series(name, kind), help_text, Labels.of(labels), value)

    def families(self) -> list[Family]:
        """Return the metric families of all samples."""
        for (series, labels, help_text), value in self._sums.items():
            self._samples(series, help_text).append((labels, value))
        return [Family(*series, about, samples) for series, about, samples in self._families.values()]

    def _samples(self, series: Series, help_text: str) -> list[Sample]:
        """Return a family's list of samples, to which samples that must not be summed can be appended."""
        return self._families.setdefault(series.name, (series, help_text, []))[2]

    def _add(self, series: Series, help_text: str, labels: Labels, value: float) -> None:
        key = series, labels, help_text
        self._sums[key] = self._sums.get(key, 0) + value

    def _labels(self, tags: Mapping[str, str]) -> Labels:
        return (
            Labels.of({self.dialect.label(tag): value for tag, value in tags.items()}) if tags else NO_LABELS
        )


def quantile_of(ordered: Sequence[float], quantile: float) -> float:
    """Return a quantile of sorted samples, interpolated as in Kafka, or 0 if there are no samples."""
    if not ordered:
        return 0.0
    position = quantile * (len(ordered) + 1)
    if position < 1:
        return ordered[0]
    if position >= len(ordered):
        return ordered[-1]
    lower = int(position)
    return ordered[lower - 1] + (position - lower) * (ordered[lower] - ordered[lower - 1])
