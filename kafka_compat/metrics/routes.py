"""GET /metrics and GET /public_metrics, for Prometheus."""

from kafka_compat.http.routes import UNAVAILABLE, Answer, BadCall, Call, Route, Stream
from kafka_compat.metrics.cluster_view import NoBrokerRuns
from kafka_compat.metrics.prometheus_text import CONTENT_TYPE
from kafka_compat.metrics.scraper import Scraper


def metrics_routes(scraper: Scraper) -> list[Route]:
    """Return the routes for Prometheus."""

    async def scraped(*, by_partition: bool) -> Answer:
        try:
            view = scraper.look()
        except NoBrokerRuns:
            raise BadCall("the broker is stopping or restarting", UNAVAILABLE) from None
        return Stream(await scraper.text(view, by_partition=by_partition), CONTENT_TYPE)

    async def everything(call: Call) -> Answer:
        return await scraped(by_partition=True)

    async def few(call: Call) -> Answer:
        return await scraped(by_partition=False)

    about = "metrics for Prometheus, with the names of kafka_exporter and the JMX exporter"
    return [
        Route("GET", "/metrics", everything, about),
        Route("GET", "/public_metrics", few, "metrics without per-partition and per-client samples"),
    ]
