"""Form tokens: a form is accepted only if it comes from the same listener and the same session."""

from __future__ import annotations

import pytest

from kafka_compat.http.routes import BadCall
from kafka_compat.page.site import FIELD, Forms


def test_a_form_of_the_web_console_is_accepted() -> None:
    forms = Forms()
    for session in (None, "a session"):
        assert forms.check({"x": "1", FIELD: forms.token(session)}, session) == {"x": "1"}


@pytest.mark.parametrize("token", ["", "0" * 64, "ä"])
def test_a_form_with_a_wrong_token_is_rejected(token: str) -> None:
    with pytest.raises(BadCall, match="outdated") as refused:
        Forms().check({"x": "1", FIELD: token}, None)
    assert refused.value.status == 403


def test_a_form_of_another_broker_is_rejected() -> None:
    with pytest.raises(BadCall, match="outdated"):
        Forms().check({"x": "1", FIELD: Forms().token(None)}, None)


def test_a_form_of_another_session_is_rejected() -> None:
    forms = Forms()
    with pytest.raises(BadCall):
        forms.check({FIELD: forms.token("one")}, "another")
    with pytest.raises(BadCall):
        forms.check({}, None)
