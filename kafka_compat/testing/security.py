"""Security of a broker under test: certificates, users and a token issuer, created when the broker starts.

The broker has two listeners: CLIENT, on which clients log in, and INTERNAL, in plain text, for the fixtures
and for the other brokers of a cluster.
"""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_compat.cli.ephemeral import EphemeralFolder
from kafka_compat.testing.broker_process import CLIENT, INTERNAL
from kafka_compat.testing.client_settings import CertificateFiles, Login, TokenAccess, jaas

if TYPE_CHECKING:
    from kafka_compat.security.provision import NewAuthority
    from kafka_compat.testing.token_issuer import TokenIssuer

MECHANISMS: Final = {"plain": "PLAIN", "scram": "SCRAM-SHA-512", "oauthbearer": "OAUTHBEARER", "mtls": ""}
"""Maps the kinds of security to their SASL mechanisms (none for client certificates)."""
USERS: Final = {"alice": "alice-secret"}
"""The users of a broker for which none were given."""
_PREFIX: Final = f"listener.name.{CLIENT.lower()}"
_VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_ITERATIONS: Final = 4096
_DAYS: Final = 365
_AUTHORIZER: Final = "authorizer.class.name"


class Security:
    """The certificates, the users and the tokens of one broker or cluster."""

    def __init__(self, kind: str, users: Mapping[str, str] | None) -> None:
        """`users` maps names to passwords; the first user is the default. Raises ValueError for an unknown
        kind, and without users.
        """
        if kind not in MECHANISMS:
            raise ValueError(f"security={kind!r}: expected one of {', '.join(sorted(MECHANISMS))}")
        self.kind = kind
        self.users = dict(USERS if users is None else users)
        if not self.users:
            raise ValueError("users: expected at least one user")
        self._folder: EphemeralFolder | None = None
        self._authority: NewAuthority | None = None
        self._foreign_authority: NewAuthority | None = None
        self._issuer: TokenIssuer | None = None

    @property
    def issuer(self) -> "TokenIssuer":
        """The token issuer. Raises RuntimeError if there is none."""
        if self._issuer is None:
            raise RuntimeError("the broker has no token issuer: start it with security='oauthbearer'")
        return self._issuer

    @property
    def folder(self) -> Path:
        """The directory of the files. Raises RuntimeError before `open`."""
        if self._folder is None:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        return Path(self._folder.path)

    def open(self) -> None:
        """Create the files, and start the token issuer, unless this was done before."""
        if self._folder is not None:
            return
        from kafka_compat.security.provision import NewAuthority

        self._folder = EphemeralFolder()
        now = datetime.now(UTC)
        self._authority = NewAuthority("kafka-compat testing CA", now)
        self._write("ca.pem", self._authority.issued.certificate)
        own = self._authority.issue(["localhost", "127.0.0.1"], _DAYS)
        self._write("server.pem", own.key + own.certificate)
        if self.kind == "scram":
            self._write("users.json", self._credentials())
        elif self.kind == "oauthbearer":
            from kafka_compat.testing.token_issuer import TokenIssuer

            self._issuer = TokenIssuer(self.users)

    def close(self) -> None:
        """Delete the files, and stop the token issuer."""
        if self._issuer is not None:
            self._issuer.close()
            self._issuer = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def _credentials(self) -> bytes:
        from kafka_compat.security import first_users, scram_credential

        mechanism = MECHANISMS["scram"]
        return first_users.encode(
            {
                user: {
                    mechanism: scram_credential.from_password(
                        password, secrets.token_bytes(16), _ITERATIONS, mechanism
                    )
                }
                for user, password in self.users.items()
            }
        )

    def broker_settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the settings of the broker's listeners, and the broker's other settings, `settings`, which
        take precedence.
        """
        mechanism = MECHANISMS[self.kind]
        found: dict[str, object] = {
            "listener.security.protocol.map": (
                f"{CLIENT}:{'SASL_SSL' if mechanism else 'SSL'},{INTERNAL}:PLAINTEXT"
            ),
            "inter.broker.listener.name": INTERNAL,
            f"{_PREFIX}.ssl.keystore.type": "PEM",
            f"{_PREFIX}.ssl.keystore.location": str(self.folder / "server.pem"),
            f"{_PREFIX}.ssl.truststore.type": "PEM",
            f"{_PREFIX}.ssl.truststore.location": str(self.folder / "ca.pem"),
        }
        if mechanism:
            found[f"{_PREFIX}.sasl.enabled.mechanisms"] = mechanism
        else:
            found[f"{_PREFIX}.ssl.client.auth"] = "required"
        login = f"{_PREFIX}.{mechanism.lower()}.sasl.jaas.config"
        if self.kind == "plain":
            users = {f"user_{user}": password for user, password in self.users.items()}
            found[login] = jaas(mechanism, **users)
        elif self.kind == "scram":
            from kafka_compat.security import first_users

            found[login] = jaas(mechanism)
            found[first_users.SETTING] = str(self.folder / "users.json")
        elif self.kind == "oauthbearer":
            from kafka_compat.testing.token_issuer import AUDIENCE

            found |= {
                login: jaas(mechanism),
                f"{_PREFIX}.{mechanism.lower()}.sasl.server.callback.handler.class": _VALIDATOR,
                "sasl.oauthbearer.jwks.endpoint.url": self.issuer.keys_url,
                "sasl.oauthbearer.expected.issuer": self.issuer.url,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
            }
        found |= settings
        if settings.get(_AUTHORIZER):
            # The fixtures and the brokers use the listener without authentication.
            others = str(settings.get("super.users") or "")
            found["super.users"] = ";".join(filter(None, [others, "User:ANONYMOUS"]))
        return found

    def certificate(self, user: str, *, expired: bool = False, forged: bool = False) -> CertificateFiles:
        """Return a new client certificate with the common name `user`. A certificate with `expired` was
        valid until yesterday; one with `forged` is signed by an authority that the broker does not trust.
        """
        from kafka_compat.security.provision import NewAuthority

        authority = self._authority
        if authority is None:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        now = datetime.now(UTC)
        if forged:
            if self._foreign_authority is None:
                self._foreign_authority = NewAuthority("kafka-compat testing CA", now)
            authority = self._foreign_authority
        issued = authority.issue([user], _DAYS, now - timedelta(days=_DAYS + 1) if expired else now)
        name = f"{user}-{secrets.token_hex(4)}"
        return CertificateFiles(
            issued.certificate.decode(),
            issued.key.decode(),
            self._write(f"{name}.crt", issued.certificate),
            self._write(f"{name}.key", issued.key),
        )

    def login(
        self,
        bootstrap: str,
        user: str | None = None,
        *,
        password: str | None = None,
        token: str | None = None,
        certificate: CertificateFiles | None = None,
    ) -> Login:
        """Return what a client needs to log in as `user`, by default as the first user, with their password,
        token or certificate, unless another one is given. Raises ValueError if a secret is unknown or does
        not fit this kind of security.
        """
        user = next(iter(self.users)) if user is None else user
        for name, given, kinds in (
            ("password", password, ("plain", "scram", "oauthbearer")),
            ("token", token, ("oauthbearer",)),
            ("certificate", certificate, ("mtls",)),
        ):
            if given is not None and self.kind not in kinds:
                raise ValueError(f"{name}: a broker with security={self.kind!r} does not use it")
        found = Login(
            bootstrap,
            (self.folder / "ca.pem").read_text(),
            str(self.folder / "ca.pem"),
            MECHANISMS[self.kind],
            user,
        )
        if self.kind == "mtls":
            return found._replace(certificate=certificate or self.certificate(user))
        if password is None and token is None and user not in self.users:
            raise ValueError(f"user {user!r}: expected one of {', '.join(self.users)}, or a password")
        found = found._replace(password=self.users.get(user, "") if password is None else password)
        if self.kind == "oauthbearer":
            found = found._replace(token=self._token_access(user, token))
        return found

    def _token_access(self, user: str, token: str | None) -> TokenAccess:
        from kafka_compat.testing.token_issuer import SCOPE

        issuer = self.issuer
        if token is None:
            return TokenAccess(issuer.token_url, SCOPE, lambda: issuer.token(user))
        return TokenAccess(issuer.endpoint_for(token), SCOPE, lambda: token)
