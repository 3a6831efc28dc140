"""Credentials and TLS context for connections between brokers (security.inter.broker.protocol)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ssl

    from kafka_compat.security.sasl.client import ClientMechanism


class SaslLogin(NamedTuple):
    """Credentials with which this broker logs in to others. `new_client` receives the dialed host name.

    `asks_others`: whether the first token may be fetched from a KDC, and is therefore created in a thread.
    """

    mechanism: str
    new_client: Callable[[str], ClientMechanism]
    asks_others: bool = False


class BrokerSecurity(NamedTuple):
    """TLS and SASL for connections between brokers. Both are None for PLAINTEXT. `tls` returns the current
    context.
    """

    tls: Callable[[], ssl.SSLContext] | None = None
    login: SaslLogin | None = None


NONE: Final = BrokerSecurity()
