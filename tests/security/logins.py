"""Raw client connections, over TLS or authenticated with SCRAM by a password or a delegation token."""

from __future__ import annotations

import base64
import ssl

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import ScramClient
from tests.conformance.wire import CLIENT_ID, Connection, Plain
from tests.security.authority import Signed

_VERSION = 2


class Refused(AssertionError):
    """The broker rejected the login. The text is the broker's error message."""


class TlsConnection(Connection):
    """A TLS connection with an optional client certificate. The broker's certificate is not verified."""

    def __init__(self, address: str, certificate: Signed | None = None, client_id: str = CLIENT_ID) -> None:
        super().__init__(address, client_id=client_id)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate.certificate, certificate.key)
        self._socket = context.wrap_socket(self._socket)


class TokenClient(ScramClient):
    """SCRAM login with a delegation token, like Java's ScramLoginModule with tokenauth="true"."""

    def __init__(self, mechanism: str, token_id: str, secret: bytes) -> None:
        super().__init__(mechanism, token_id, base64.b64encode(secret).decode())
        self._bare += ",tokenauth=true"


class Login:
    """An authenticated connection. `lifetime_ms` is the session lifetime, or 0 without expiry."""

    def __init__(self, connection: Connection, mechanism: str, client: ScramClient) -> None:
        self.connection = connection
        self.lifetime_ms = 0
        try:
            self.again(mechanism, client)
        except BaseException:
            self.connection.close()
            raise

    def again(self, mechanism: str, client: ScramClient) -> None:
        """Authenticate, also on an authenticated connection (KIP-368). Raises Refused."""
        told = self.connection.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})
        if told["error_code"]:
            raise Refused(f"error {told['error_code']}")
        token: bytes | None = client.first()
        while token is not None:
            answer: Plain = self.connection.ask(ApiKey.SASL_AUTHENTICATE, _VERSION, {"auth_bytes": token})
            if answer["error_code"]:
                raise Refused(answer["error_message"])
            self.lifetime_ms = answer["session_lifetime_ms"]
            token = client.next(answer["auth_bytes"])


def log_in(address: str, name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Login:
    """Log in with a password. Raises Refused."""
    return Login(Connection(address), mechanism, ScramClient(mechanism, name, password))


def log_in_by_token(address: str, token_id: str, secret: bytes, mechanism: str = "SCRAM-SHA-256") -> Login:
    """Log in with a delegation token, as its owner. Raises Refused."""
    return Login(Connection(address), mechanism, TokenClient(mechanism, token_id, secret))
