"""One request for a page, the API that its view may use, and the kinds of views."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
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
    """What a visit may do: as much as a client with the page's principal, from the address of the browser.
    Without an authorizer everybody may do everything.
    """

    def __init__(self, authorizer: Authorizer | None, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self.host = host

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether this is allowed; for what is left out where it is not."""
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
        """Raises BadCall where it is not allowed."""
        if self._authorizer is not None and not self._authorizer.allows(
            self.principal, self.host, operation, resource_type, name
        ):
            what = resource_type.name.lower().replace("_", " ")
            raise BadCall(
                f"{self.principal} from {self.host} may not {operation.name} the {what} {name}: give it an "
                "ACL, or set kafka.compat.http.page.principal to somebody who may",
                FORBIDDEN,
            )

    def require_cluster(self, operation: Operation) -> None:
        """The same for the cluster."""
        self.require(operation, ResourceType.CLUSTER, CLUSTER_NAME)


CLIENT_ID: Final = "kafka-compat-page"
PATIENCE_S: Final = 30.0
_CHECKED_BY_VIEWS: Final = frozenset((ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH))
"""Views tell of their errors in words of their own."""


async def ask_here(calls: Calls, caller: Caller, key: ApiKey, version: int, request: Any) -> Any:
    """The response of a broker of this process, which is asked as by a client. Raises TimeoutError, and
    BadCall with the text of an error that fails the request as a whole.
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

    def later(self) -> Visit:
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
        self, key: ApiKey, version: int | None = None, broker_id: int | None = None, /, **fields: Any
    ) -> Any:
        """The answer of a broker to a request with these fields: of one of this process, or of `broker_id`.
        Without `version` it is the newest that this broker serves. Raises BadCall for a broker that does not
        answer.
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
                raise ConnectionError(f"there is no broker {broker_id}")
            if version is None:
                version = self.cluster.services[0].served[key][1]
            return await remote.ask(broker_id, key, version, request)
        except (ConnectionError, TimeoutError) as error:
            raise BadCall(f"broker {broker_id} does not answer: {error}", 502) from None

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


Data = dict[str, Any]
"""What is to be seen, as json.dumps takes it; a template finds it as `it`."""


class View(NamedTuple):
    """A page that shows something: see the room's docstring."""

    path: str
    """Under /ui, as `/topics`."""
    see: Callable[[Visit], Awaitable[Data]]
    title: str
    summary: str
    """One line, for the list of what can be asked."""
    below: str = ""
    """The path of the menu's entry that it belongs to, unless it has one itself."""
    query: Mapping[str, str] = {}
    """Its parameters, as a Route's."""

    @property
    def menu(self) -> str:
        return self.below or self.path

    @property
    def template(self) -> str:
        """The name of its template."""
        return f"{self.path[1:].replace('-', '_')}.html"


class Shown(NamedTuple):
    """An action that ends with a page."""

    data: Data
    template: str
    title: str
    menu: str


class Done(NamedTuple):
    """An action that leads on: `path` is under /ui, with its query (`visit.link`)."""

    data: Data
    path: str


class Action(NamedTuple):
    """What changes something, by POST."""

    path: str
    act: Callable[[Visit], Awaitable[Shown | Done]]
    summary: str
    body: Mapping[str, str]
    """The fields, as a Route's."""


class Download(NamedTuple):
    """Bytes that a browser puts into a file: a `File` with the file's name."""

    path: str
    give: Callable[[Visit], Awaitable[File]]
    summary: str
    query: Mapping[str, str]
