"""Credentials of test clients: certificates in PEM and in Java key stores, passwords, tokens, and tickets."""

from __future__ import annotations

import json
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from tests.oracle.sasl_oracle import PACKAGE, SECURED
from tests.security.authority import Authority
from tests.security.kdc import REALM, Kdc
from tests.security.oauth.issuer import Issuer
from tests.security.secured import USERS
from tests.support.client_security import JAVA_VARIABLE, VARIABLE

WAYS = ("SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
"""Authentication with a client certificate, or with a mechanism over SASL_SSL."""

_STORE_PASSWORD = "of the store"
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_MODULES = {"PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule"}
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_BEARER = f"{PACKAGE}OAuthBearerLoginModule"


def principal(way: str, user: str) -> str:
    """The principal of `user` on the broker."""
    return f"User:CN={user}" if way == "SSL" else f"User:{user}"


@dataclass
class Files:
    """Creates credential files. `kdc` is None where none can run; GSSAPI is unavailable then."""

    authority: Authority
    directory: Path
    issuer: Issuer
    kdc: Kdc | None
    _key_tables: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        imported = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(self.authority.file)]
        store = ["-keystore", str(self.directory / "trust.jks"), "-storetype", "JKS"]
        subprocess.run([*imported, *store, "-storepass", _STORE_PASSWORD], check=True, capture_output=True)

    def broker(self, listener: str) -> dict[str, str]:
        """Settings that add tokens and, with a KDC, tickets to the mechanisms of `listener`."""
        prefix = f"listener.name.{listener.lower()}"
        mechanisms = [*WAYS[1:5]]
        settings = {
            "sasl.oauthbearer.jwks.endpoint.url": self.issuer.keys_url,
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": SECURED,
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{_BEARER} required;",
        }
        if self.kdc is not None:
            mechanisms.append("GSSAPI")
            settings["sasl.kerberos.service.name"] = "kafka"
            settings[f"{prefix}.gssapi.sasl.jaas.config"] = self._kerberos("kafka/localhost")
        settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(mechanisms)
        return settings

    def environment(self, way: str, user: str = "alice", impostor: bool = False) -> dict[str, str]:
        """The environment of a client program. An impostor has a wrong password or a forged token."""
        protocol = "SSL" if way == "SSL" else "SASL_SSL"
        given = {"protocol": protocol, "ca": str(self.authority.file)}
        java = {
            "security.protocol": protocol,
            "ssl.truststore.location": str(self.directory / "trust.jks"),
            "ssl.truststore.password": _STORE_PASSWORD,
        }
        found: dict[str, str] = {}
        if way == "SSL":
            given |= self._certificate(user, java)
        else:
            given["mechanism"] = java["sasl.mechanism"] = way
        if way == "OAUTHBEARER":
            given |= self._token(user, impostor, java, found)
        elif way == "GSSAPI":
            given |= self._ticket(user, java, found)
        elif way != "SSL":
            password = "wrong" if impostor else USERS[user]
            given |= {"user": user, "password": password}
            quoted = password.replace('"', '\\\\"')  # properties files need two backslashes for one
            module = _MODULES.get(way, _SCRAM)
            java["sasl.jaas.config"] = f'{module} required username="{user}" password="{quoted}";'
        file = self.directory / f"{secrets.token_hex(4)}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in java.items()))
        return found | {VARIABLE: json.dumps(given), JAVA_VARIABLE: str(file)}

    def _certificate(self, user: str, java: dict[str, str]) -> dict[str, str]:
        own = self.authority.sign(user)
        key = serialization.load_pem_private_key(own.key.read_bytes(), None)
        certificate = load_pem_x509_certificate(own.certificate.read_bytes())
        encryption = serialization.BestAvailableEncryption(_STORE_PASSWORD.encode())
        store = self.directory / f"{user}.p12"
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(b"a", key, certificate, None, encryption)  # type: ignore[arg-type]
        )
        java |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": _STORE_PASSWORD,
            "ssl.key.password": _STORE_PASSWORD,
        }
        return {"certificate": str(own.certificate), "key": str(own.key)}

    def _token(
        self, user: str, impostor: bool, java: dict[str, str], environment: dict[str, str]
    ) -> dict[str, str]:
        url = self.issuer.token_url_of(user, forged=impostor)
        login = 'clientId="client" clientSecret="secret" scope="kafka"'
        java |= {
            "sasl.jaas.config": f"{_BEARER} required {login};",
            "sasl.login.callback.handler.class": f"{PACKAGE}OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": url,
        }
        # Kafka 4 requests tokens only from allowed URLs.
        environment["JAVA_TOOL_OPTIONS"] = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
        return {"token_url": url}

    def _ticket(self, user: str, java: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
        assert self.kdc is not None
        login = self._kerberos(user)
        java |= {"sasl.jaas.config": login, "sasl.kerberos.service.name": "kafka"}
        # Kafka 0.9 and 0.10.1 do not support sasl.jaas.config.
        file = self.directory / f"{user}.jaas"
        file.write_text(f"KafkaClient {{ {login} }};\n")
        options = {"java.security.krb5.conf": self.kdc.configuration, "java.security.auth.login.config": file}
        environment |= {
            **self.kdc.environment,
            "JAVA_TOOL_OPTIONS": " ".join(f"-D{name}={value}" for name, value in options.items()),
            # Without kinit, MIT Kerberos requests tickets with this keytab, and stores them in this cache.
            "KRB5_CLIENT_KTNAME": str(self._key_table(user)),
            "KRB5CCNAME": "MEMORY:clients",
        }
        return {
            "principal": f"{user}@{REALM}",
            "keytab": str(self._key_table(user)),
            "service": "kafka",
        }

    def _kerberos(self, name: str) -> str:
        options = f'keyTab="{self._key_table(name)}" principal="{name}@{REALM}"'
        return f"{_KERBEROS} required useKeyTab=true storeKey=true {options};"

    def _key_table(self, name: str) -> Path:
        assert self.kdc is not None
        if name not in self._key_tables:
            self._key_tables[name] = self.kdc.key_table(name)
        return self._key_tables[name]
