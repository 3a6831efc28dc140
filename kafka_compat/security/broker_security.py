"""Credentials and TLS context for connections between brokers (security.inter.broker.protocol)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ssl

    from kafka_compat.security.sasl.client import ClientMechanism


class SaslLogin(NamedTuple):
    """With what a broker logs in at others; `new_client` is told the host by which it dials.

    `asks_others`: the first token may be waited for, since somebody else (a KDC) is asked for it, so it is
    made in another thread.
    """

    mechanism: str
    new_client: Callable[[str], ClientMechanism]
    asks_others: bool = False


class BrokerSecurity(NamedTuple):
    """What a broker needs on the listener that brokers use among themselves; both None for PLAINTEXT. `tls`
    gives the context of now.
    """

    tls: Callable[[], ssl.SSLContext] | None = None
    login: SaslLogin | None = None


NONE: Final = BrokerSecurity()
