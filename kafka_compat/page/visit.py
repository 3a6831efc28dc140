"""A request to the web console, the API that views use, and the kinds of views."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from kafka_compat.api.caller import Caller
from kafka_compat.api.calls import Calls
from kafka_compat.broker.services import BrokerServices
from kafka_compat.deferred import HungUp
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import CONFLICT, FORBIDDEN, BadCall, File, natural
from kafka_compat.long_work import Steps
from kafka_compat.metrics.cluster_view import ClusterView
from kafka_compat.page.observed import Observed
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class
from kafka_compat.security.authorizer import CLUSTER_NAME, Authorizer, Operation, ResourceType
from kafka_compat.security.principal import Principal


class Rights:
    """Permissions of a request: those of a client with the web console's principal and the browser's address.
    Without an authorizer, all operations are allowed.
    """

    def __init__(self, authorizer: Authorizer | None, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Return whether an operation is allowed, without audit logging. Use this to omit data."""
        return self._authorizer is None or self._authorizer.allows(
            self.principal, self.host, operation, resource_type, name, logged=False
        )

    def may_see_topic(self, name: str) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, name)

    def may_see_group(self, name: str) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.GROUP, name)

    @property
    def may_see_cluster(self) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def require(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        """Raise BadCall unless an operation is allowed, and write the decision to the audit log."""
        if self._authorizer is not None and not self._authorizer.allows(
            self.principal, self.host, operation, resource_type, name
        ):
            what = resource_type.name.lower().replace("_", " ")
            raise BadCall(
                f"{self.principal} from {self.host} may not {operation.name} the {what} {name}: add an ACL, "
                "or set kafka.compat.http.page.principal to an authorized principal",
                FORBIDDEN,
            )

    def require_cluster(self, operation: Operation) -> None:
        """Raise BadCall unless an operation on the cluster is allowed."""
        self.require(operation, ResourceType.CLUSTER, CLUSTER_NAME)


CLIENT_ID: Final = "kafka-compat-page"
PATIENCE_S: Final = 30.0
_CHECKED_BY_VIEWS: Final = frozenset((ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH))
"""APIs whose response errors are handled by the views."""


async def ask_here(calls: Calls, caller: Caller, key: ApiKey, version: int, request: Any) -> Any:
    """Send a request to a broker of this process, as a client would, and return the response.
    Raises TimeoutError if there is no response in time, or BadCall if the entire request fails.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            response = await calls.ask(caller, key, version, request)
    except (HungUp, KafkaError) as error:
        raise BadCall(f"{key.name} failed: {error}", CONFLICT) from None
    code = getattr(response, "error_code", 0)
    if code and key not in _CHECKED_BY_VIEWS:
        message = getattr(response, "error_message", None)
        raise BadCall(f"{ErrorCode(code).name}: {message or 'it failed'}", CONFLICT)
    return response


T = TypeVar("T")

ROOT: Final = "/ui"
"""URL path of the web console."""


class Visit:
    """A request to the web console. `body` contains the fields of an action."""

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
        self.query = query
        self.body = body
        self.may_write = may_write

    def later(self) -> "Visit":
        """Return this visit with the cluster's current state, for background work. Raises NoBrokerRuns."""
        cluster = self.observed.cluster()
        return Visit(cluster, self.rights, self.observed, self.query, self.body, may_write=self.may_write)

    async def finish(self, steps: Steps[T]) -> T:
        """Run a long operation in steps, and return its result."""
        return await self.cluster.long_work.finish(steps)

    def given(self, name: str) -> str:
        """Return a required query parameter. Raises BadCall if it is missing."""
        value = self.query.get(name)
        if value is None:
            raise BadCall(f"the parameter {name} is missing: add ?{name}=…")
        return value

    def number(self, name: str, default: int) -> int:
        """Return a non-negative integer from the query, or the default. Raises BadCall if it is invalid."""
        text = self.query.get(name, "")
        return natural(text, name) if text else default

    async def ask(
        self, key: ApiKey, version: int | None = None, broker_id: int | None = None, /, **fields: Any
    ) -> Any:
        """Send a request with these fields to a broker of this process or to `broker_id`, and return the
        response. `version` defaults to the newest version of this broker. Raises BadCall if the broker does
        not respond, or rejects the entire request.
        """
        request = request_class(key)(**fields)
        services = self._services_of(broker_id)
        try:
            if services is not None:
                if version is None:
                    version = services.served[key][1]
                caller = Caller(self.rights.principal, self.rights.host, self.cluster.listener, CLIENT_ID)
                return await ask_here(self.cluster.calls[services.broker_id], caller, key, version, request)
            remote = self.cluster.remote_partitions()
            if remote is None or broker_id is None:
                raise ConnectionError(f"unknown broker {broker_id}")
            if version is None:
                version = self.cluster.services[0].served[key][1]
            return await remote.ask(broker_id, key, version, request)
        except (ConnectionError, TimeoutError) as error:
            raise BadCall(f"broker {broker_id} does not respond: {error}", 502) from None

    def _services_of(self, broker_id: int | None) -> BrokerServices | None:
        services = self.cluster.services
        if broker_id is None:
            return services[0]
        return next((each for each in services if each.broker_id == broker_id), None)

    def is_here(self, broker_id: int) -> bool:
        """Return whether a broker is in this process."""
        return self._services_of(broker_id) is not None


def link(path: str, **query: object) -> str:
    """Return the URL of a page, including ROOT."""
    return ROOT + path_of(path, **query)


def path_of(path: str, **query: object) -> str:
    """Return the URL of a page without ROOT, for `Done`."""
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


Data = dict[str, Any]
"""JSON-serializable data of a page. Templates access it as `it`."""


class View(NamedTuple):
    """A page that shows data (see the package's docstring)."""

    path: str
    """Path under /ui, such as `/topics`."""
    see: Callable[[Visit], Awaitable[Data]]
    title: str
    summary: str
    """One-line description for the list of routes."""
    below: str = ""
    """Path of the page's menu entry, if it differs from `path`."""
    query: Mapping[str, str] = {}
    """Query parameters, in the format of Route.query."""

    @property
    def menu(self) -> str:
        return self.below or self.path

    @property
    def template(self) -> str:
        """File name of the template."""
        return f"{self.path[1:].replace('-', '_')}.html"


class Shown(NamedTuple):
    """Result of an action that renders a page."""

    data: Data
    template: str
    title: str
    menu: str


class Done(NamedTuple):
    """Result of an action that redirects to `path`, a path under /ui with its query (see `path_of`)."""

    data: Data
    path: str


class Action(NamedTuple):
    """A change, requested by POST."""

    path: str
    act: Callable[[Visit], Awaitable[Shown | Done]]
    summary: str
    body: Mapping[str, str]
    """Fields, in the format of Route.body."""


class Download(NamedTuple):
    """A file to download."""

    path: str
    give: Callable[[Visit], Awaitable[File]]
    summary: str
    query: Mapping[str, str]
