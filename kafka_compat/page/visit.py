"""One request for a page, and what its view may use."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from kafka_compat.api.caller import Caller
from kafka_compat.http.routes import BadCall, natural
from kafka_compat.page.asking import CLIENT_ID, ask_here

if TYPE_CHECKING:
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.long_work import Steps
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.page.observed import Observed
    from kafka_compat.page.rights import Rights
    from kafka_compat.protocol.api_keys import ApiKey

T = TypeVar("T")

ROOT: Final = "/ui"
"""Where the page is."""


class Visit:
    """See above. `body` has the fields of an action."""

    def __init__(
        self,
        cluster: ClusterView,
        rights: Rights,
        observed: Observed,
        query: Mapping[str, str],
        body: Mapping[str, Any],
        *,
        may_write: bool,
    ) -> None:
        self.cluster = cluster
        self.rights = rights
        self.observed = observed
        """What is remembered between visits."""
        self.query = query
        self.body = body
        self.may_write = may_write

    def anew(self) -> Visit:
        """The same at a later time, for work that outlives the request. Raises NoBrokerRuns."""
        cluster = self.observed.cluster()
        return Visit(cluster, self.rights, self.observed, self.query, self.body, may_write=self.may_write)

    async def finish(self, steps: Steps[T]) -> T:
        """The result of long work."""
        return await self.cluster.long_work.finish(steps)

    def given(self, name: str) -> str:
        """A parameter that there has to be. BadCall."""
        value = self.query.get(name)
        if value is None:
            raise BadCall(f"the parameter {name} is missing: add ?{name}=…")
        return value

    def number(self, name: str, default: int) -> int:
        """A parameter that is a whole number of at least 0. BadCall."""
        text = self.query.get(name, "")
        return natural(text, name) if text else default

    async def ask(
        self, key: ApiKey, request: Any, *, version: int | None = None, broker_id: int | None = None
    ) -> Any:
        """The answer of a broker to a request: of one of this process, or of `broker_id`. `version` is the
        newest that this broker serves. Raises BadCall for a broker that does not answer.
        """
        services = self._services_of(broker_id)
        try:
            if services is not None:
                if version is None:
                    version = services.served[key][1]
                return await ask_here(
                    self.cluster.calls[services.broker_id], self._caller(), key, version, request
                )
            remote = self.cluster.remote_partitions()
            if remote is None or broker_id is None:
                raise ConnectionError(f"there is no broker {broker_id}")
            if version is None:
                version = self.cluster.services[0].served[key][1]
            return await remote.ask(broker_id, key, version, request)
        except (ConnectionError, TimeoutError) as error:
            raise BadCall(f"broker {broker_id} does not answer: {error}", 502) from None

    def _caller(self) -> Caller:
        return Caller(self.rights.principal, self.rights.host, self.cluster.listener, CLIENT_ID)

    def _services_of(self, broker_id: int | None) -> BrokerServices | None:
        services = self.cluster.services
        if broker_id is None:
            return services[0]
        return next((each for each in services if each.broker_id == broker_id), None)

    def is_here(self, broker_id: int) -> bool:
        """Whether that broker is one of this process."""
        return self._services_of(broker_id) is not None


def link(path: str, **query: object) -> str:
    """The address of a page, below ROOT."""
    return ROOT + path_of(path, **query)


def path_of(path: str, **query: object) -> str:
    """The same without ROOT, as `Done` has it."""
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


async def result(found: T | Coroutine[Any, Any, T]) -> T:
    """What is there at once, or later."""
    return await found if isinstance(found, Coroutine) else found
