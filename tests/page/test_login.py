"""Login to a web console with a token: only browsers that have sent the token get access, and requests from
other sites are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.login import TOKEN, started
from tests.page.site import Site

CROSS_SITE = [
    {"Origin": "https://example.com"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {
        "kafka.compat.http.token": TOKEN,
        "kafka.compat.control.enable": "true",
        "kafka.compat.http.page.write.enable": "true",
    }
    broker, site = started(tmp_path_factory.mktemp("login"), **settings)
    yield site
    broker.stop()
    log = broker.log.read_text()
    assert TOKEN not in log and "Traceback" not in log


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    broker, site = started(tmp_path_factory.mktemp("open"))
    yield site
    broker.stop()


def logged_in(site: Site) -> Site:
    """Log in with the token, and return a client with the session cookie."""
    answer = site.post_form("login", {"token": TOKEN, "back": "/ui/topics"})
    assert (answer.status, answer.headers["Location"]) == (303, "/ui/topics")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and TOKEN not in cookie
    return Site(site.url, Cookie=cookie.partition(";")[0])


def test_a_browser_is_redirected_to_the_login_page_and_back(site: Site) -> None:
    answer = site.get("topics", q="a")
    assert (answer.status, answer.headers["Location"]) == (303, "/ui/login?back=%2Fui%2Ftopics%3Fq%3Da")
    login = site.ask("GET", answer.headers["Location"])
    assert login.status == 200 and 'value="/ui/topics?q=a"' in login.text
    browser = logged_in(site)
    assert browser.get("topics").status == 200
    assert browser.data("topics")
    assert browser.ask("GET", "/ui/login").status == 303


def test_a_program_authenticates_with_the_token(site: Site) -> None:
    assert site.ask("GET", "/ui/topics.json").status == 401
    program = Site(site.url, Authorization=f"Bearer {TOKEN}".encode().decode("latin-1"))
    assert program.data("topics")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x"])
def test_a_wrong_token_is_rejected(site: Site, token: str) -> None:
    answer = site.post_form("login", {"token": token, "back": ""})
    assert answer.status == 401 and "Wrong token." in answer.shown
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "back", ["https://example.com", "//example.com", "/ui/\\example.com", "/metrics", ""]
)
def test_the_login_redirects_only_to_the_web_console(site: Site, back: str) -> None:
    answer = site.post_form("login", {"token": TOKEN, "back": back})
    assert answer.headers["Location"] == "/ui/overview"


def test_a_session_is_rejected_after_logout(site: Site) -> None:
    browser = logged_in(site)
    assert browser.post_form("logout", {}).status == 403
    token = browser.get("topics").form_token()
    assert browser.post_form("logout", {"form_token": token}).status == 303
    assert browser.get("topics").status == 303
    assert browser.ask("GET", "/ui/topics.json").status == 401


def test_a_session_is_valid_only_for_the_web_console(site: Site) -> None:
    browser = logged_in(site)
    for path in ("/control/v1/time", "/metrics", "/openapi.json"):
        assert browser.ask("GET", path).status == 401, path


@pytest.mark.parametrize("headers", CROSS_SITE, ids=lambda headers: " ".join(headers.values()))
def test_requests_from_other_sites_are_rejected(site: Site, open_site: Site, headers: dict[str, str]) -> None:
    for asked in (logged_in(site), open_site):
        for path in ("/ui/topics", "/ui/topics.json"):
            assert asked.ask("GET", path, headers=headers).status == 403
        assert asked.post_form("login", {"token": TOKEN}, **headers).status == 403
    assert site.ask("GET", "/ui/login", headers=headers).status == 403


def test_links_from_other_sites_are_allowed(open_site: Site) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert open_site.ask("GET", "/ui/topics", headers=headers).status == 200


def test_forms_from_the_web_console_are_accepted(site: Site, open_site: Site) -> None:
    assert logged_in(site).ask("GET", "/ui/topics", headers={"Origin": site.url}).status == 200
    assert open_site.ask("GET", "/ui/topics", headers={"Host": "rebound.example"}).status == 403
    # Without a configured token, there is no login.
    assert open_site.ask("GET", "/ui/login").headers["Location"] == "/ui/overview"
