"""HTTP routes of the web console: each view as HTML and JSON, actions, and the login."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.broker import Broker
from kafka_compat.http.listener import HttpListener
from kafka_compat.http.routes import (
    FORBIDDEN,
    NOT_FOUND,
    UNAVAILABLE,
    Answer,
    BadCall,
    Call,
    File,
    Page,
    Redirect,
    Route,
)
from kafka_compat.lazy import Lazy
from kafka_compat.metrics.cluster_view import ClusterView, NoBrokerRuns
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.network.strangers import Strangers
from kafka_compat.page.observed import Observed
from kafka_compat.page.rendering import POLICY, STYLE, Templates
from kafka_compat.page.sampler import Sampler
from kafka_compat.page.views import ACTIONS, DOWNLOADS, VIEWS
from kafka_compat.page.visit import ROOT, Action, Done, Download, Rights, View, Visit
from kafka_compat.security.principal import Principal

if TYPE_CHECKING:
    from kafka_compat.decoding.registry import Registry

_LOGIN: Final = f"{ROOT}/login"
_FIRST: Final = f"{ROOT}/overview"
_UNAUTHORIZED: Final = 401
_YEAR_S: Final = 31_536_000
FIELD: Final = "form_token"


class Forms:
    """Protection against cross-site requests. Each form contains a token that other sites cannot know. The
    token belongs to a session or, without sessions, to all users of the web console.
    """

    def __init__(self) -> None:
        self._secret = os.urandom(32)

    def token(self, session: str | None) -> str:
        """Return the token for the forms of a session."""
        return hmac.new(self._secret, (session or "").encode(), "sha256").hexdigest()

    def check(self, body: Mapping[str, Any], session: str | None) -> dict[str, Any]:
        """Return the fields of a form, without the token's field. Raises BadCall if the token is wrong."""
        given = str(body.get(FIELD, ""))
        if not hmac.compare_digest(given.encode(), self.token(session).encode()):
            text = (
                "this form is outdated (the broker or session restarted): go back, reload, and send it again"
            )
            raise BadCall(text, FORBIDDEN)
        return {name: value for name, value in body.items() if name != FIELD}


class Site:
    """The web console of this process's brokers. `loop` watches their event loop. If `may_write` is false,
    actions are rejected.
    """

    def __init__(
        self,
        brokers: Sequence[Broker],
        listener: HttpListener,
        principal: Principal,
        registry: Registry | None,
        loop: LoopWatch,
        *,
        may_write: bool,
    ) -> None:
        self._brokers = brokers
        self._listener = listener
        self._principal = principal
        self._may_write = may_write
        self._forms = Forms()
        self._observed = Observed(brokers, registry)
        self._sampler = Sampler(brokers, loop, self._observed.hour)
        self._strangers = Strangers()
        self._templates: Lazy[asyncio.Future[Templates]] = Lazy(
            lambda: asyncio.ensure_future(asyncio.to_thread(Templates))
        )

    def routes(self) -> list[Route]:
        routes = [
            self._route("GET", "/", self._to_first),
            self._route("GET", ROOT, self._to_first),
            Route("GET", STYLE, self._style, "", query={"v": "string: version"}, for_anybody=True),
            Route(
                "GET",
                _LOGIN,
                self._login,
                "",
                query={"back": "string: page to return to"},
                for_anybody=True,
                for_browsers=True,
            ),
            Route(
                "POST",
                _LOGIN,
                self._log_in,
                "",
                body={"token": "string: kafka.compat.http.token", "back": "string: page to return to"},
                for_anybody=True,
                for_browsers=True,
            ),
            Route(
                "POST", f"{ROOT}/logout", self._log_out, "", {FIELD: "string: see Forms"}, for_browsers=True
            ),
        ]
        for view in VIEWS:
            routes += self._of_view(view)
        routes += map(self._of_action, ACTIONS)
        routes += map(self._of_download, DOWNLOADS)
        routes.append(self._route("GET", ROOT + "/{unknown}", self._not_found))
        return routes

    async def watch(self) -> None:
        """Compile the templates, and sample the brokers periodically, until canceled."""
        self._templates.get()
        await asyncio.gather(self._observed.watch(), self._sampler.watch())

    def _route(self, method: str, path: str, handle: Any, query: Mapping[str, str] | None = None) -> Route:
        return Route(method, path, handle, "", query=query or {}, for_browsers=True, login=_LOGIN)

    # --- views

    def _of_view(self, view: View) -> list[Route]:
        async def as_page(call: Call) -> Answer:
            try:
                data = await view.see(self._visit(call))
            except BadCall as error:
                return await self._problem(call, error)
            return await self._page(
                call, view.template, data, view.title, view.menu, json_path=f"{view.path}.json"
            )

        async def as_data(call: Call) -> Answer:
            return await view.see(self._visit(call))

        path = ROOT + view.path
        return [
            self._route("GET", path, as_page, view.query),
            Route("GET", f"{path}.json", as_data, view.summary, query=view.query, for_browsers=True),
        ]

    def _of_download(self, download: Download) -> Route:
        async def handle(call: Call) -> Answer:
            return await download.give(self._visit(call))

        path = ROOT + download.path
        return Route("GET", path, handle, download.summary, query=download.query, for_browsers=True)

    def _of_action(self, action: Action) -> Route:
        async def handle(call: Call) -> Answer:
            try:
                done = await action.act(self._acting_visit(call))
            except BadCall as error:
                if call.is_form:
                    return await self._problem(call, error)
                raise
            if not call.is_form:
                return done.data
            if isinstance(done, Done):
                return Redirect(ROOT + done.path)
            return await self._page(call, done.template, done.data, done.title, done.menu)

        body = {**action.body, FIELD: "string: token of the form; not needed for JSON"}
        return Route("POST", ROOT + action.path, handle, action.summary, body, for_browsers=True)

    def _visit(self, call: Call) -> Visit:
        try:
            cluster = ClusterView(self._brokers)
        except NoBrokerRuns:
            raise BadCall("the broker is stopping or restarting", UNAVAILABLE) from None
        rights = Rights(cluster.services[0].authorizer, self._principal, call.host)
        return Visit(cluster, rights, self._observed, call.query, call.body, may_write=self._may_write)

    def _acting_visit(self, call: Call) -> Visit:
        if not self._may_write:
            text = "changes are disabled: set kafka.compat.http.page.write.enable=true to allow them"
            raise BadCall(text, FORBIDDEN)
        if call.is_form:
            call = call._replace(body=self._forms.check(call.body, call.session))
        return self._visit(call)

    async def _page(
        self,
        call: Call,
        template: str,
        data: Any,
        title: str,
        menu: str,
        status: int = 200,
        *,
        json_path: str | None = None,
    ) -> Answer:
        templates = await asyncio.shield(self._templates.get())
        from markupsafe import Markup

        token = self._forms.token(call.session)
        running = [each for each in self._brokers if each.is_running]
        context = {
            "it": data,
            "title": title,
            "current": menu,
            "query": dict(call.query),
            "json_path": json_path,
            "writes": self._may_write,
            "principal": str(self._principal),
            "can_log_out": call.session is not None,
            "form_token": lambda: Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, token),
        }
        steps = templates.render(template, context)
        if running:
            html = await running[0].services.long_work.finish(steps)
        else:
            html = await _finish_at_once(steps)
        return Page(html, status, POLICY)

    async def _problem(self, call: Call, error: BadCall) -> Answer:
        data = {"status": error.status, "detail": str(error)}
        return await self._page(call, "problem.html", data, "Error", "", error.status)

    async def _not_found(self, call: Call) -> Answer:
        problem = BadCall(f"unknown page {ROOT}/{call.path['unknown']}", NOT_FOUND)
        if call.path["unknown"].endswith(".json"):
            raise problem
        return await self._problem(call, problem)

    async def _to_first(self, call: Call) -> Answer:
        return Redirect(_FIRST)

    async def _style(self, call: Call) -> Answer:
        templates = await asyncio.shield(self._templates.get())
        return File(templates.style, "text/css; charset=utf-8", _YEAR_S)

    # --- authentication

    async def _login(self, call: Call) -> Answer:
        back = _own(call.query.get("back", ""))
        if not self._listener.guard.asks_for_token or call.session is not None:
            return Redirect(back)
        return await self._page(call, "login.html", {"back": back, "is_wrong": False}, "Log in", "")

    async def _log_in(self, call: Call) -> Answer:
        back = _own(str(call.body.get("back", "")))
        if self._listener.guard.is_token(str(call.body.get("token", ""))):
            return Redirect(back, self._listener.sessions.open())
        text = f"Rejected a web console login from {call.host}: wrong kafka.compat.http.token"
        self._strangers.tell(call.host, text, time.monotonic())
        self._observed.refusals.note(call.host, "wrong kafka.compat.http.token for the web console")
        return await self._page(
            call, "login.html", {"back": back, "is_wrong": True}, "Log in", "", _UNAUTHORIZED
        )

    async def _log_out(self, call: Call) -> Answer:
        self._forms.check(call.body, call.session)
        if call.session is not None:
            self._listener.sessions.end(call.session)
        return Redirect(_LOGIN, "")


def _own(path: str) -> str:
    """Return the path if it is under ROOT, or else the overview, to prevent redirects to other sites."""
    return path if path.startswith(f"{ROOT}/") and path.isprintable() and "\\" not in path else _FIRST


async def _finish_at_once(steps: Any) -> str:
    try:
        while True:
            next(steps)
            await asyncio.sleep(0)
    except StopIteration as stop:
        return str(stop.value)
