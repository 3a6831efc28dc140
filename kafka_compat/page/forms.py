"""Protection of forms against other sites: each has a token that only pages of this listener know. No I/O."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from typing import Any, Final

from kafka_compat.http.routes import BadCall

FIELD: Final = "form_token"
_FORBIDDEN: Final = 403


class Forms:
    """Of one listener. A token belongs to a session, or where there is none to whoever reads the page."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)

    def token(self, session: str | None) -> str:
        """What FIELD has to hold."""
        return hmac.new(self._secret, (session or "").encode(), "sha256").hexdigest()

    def check(self, body: Mapping[str, Any], session: str | None) -> dict[str, Any]:
        """The fields of a form, without FIELD. BadCall."""
        given = str(body.get(FIELD, ""))
        if not hmac.compare_digest(given.encode(), self.token(session).encode()):
            text = (
                "this form is not of now (the broker or your session began anew): go back, reload, send again"
            )
            raise BadCall(text, _FORBIDDEN)
        return {name: value for name, value in body.items() if name != FIELD}
