"""Client settings that log in to a broker under test, for each kind of client.

The settings of Python clients are dictionaries. For franz-go and kafkajs, whose settings are code, they are
source files.
"""

import json
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka_compat.config.properties import write_properties

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_TOKEN_LIFETIME_S: Final = 3600.0


class CertificateFiles(NamedTuple):
    """A client's certificate and private key, as PEM and as the paths of PEM files."""

    certificate: str
    key: str
    certificate_file: str
    key_file: str


class TokenAccess(NamedTuple):
    """How clients get their tokens: `fetch` returns one. `scope` is what clients request at `url`."""

    url: str
    scope: str
    fetch: Callable[[], str]


class Login(NamedTuple):
    """What a client needs to log in. `authority` is the certificate to trust, as PEM. Without
    `authority`, the broker uses neither TLS nor authentication; without `mechanism`, it does not use SASL.
    """

    bootstrap: str
    authority: str = ""
    authority_file: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    certificate: CertificateFiles | None = None
    token: TokenAccess | None = None

    @property
    def protocol(self) -> str:
        """The value of security.protocol."""
        if not self.authority:
            return "PLAINTEXT"
        return "SASL_SSL" if self.mechanism else "SSL"


def jaas(mechanism: str, **options: str) -> str:
    """Return a value for sasl.jaas.config."""
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    pairs = "".join(f' {name}="{value}"' for name, value in escaped.items())
    return f"{_MODULES[mechanism]} required{pairs};"


def java(login: Login) -> dict[str, str]:
    """Return the settings of Java clients from Kafka 2.7 on, and of Kafka's tools."""
    found = {"bootstrap.servers": login.bootstrap, "security.protocol": login.protocol}
    if login.authority:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": login.authority}
    if login.certificate is not None:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": login.certificate.key,
            "ssl.keystore.certificate.chain": login.certificate.certificate,
        }
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
    if login.token is not None:
        found |= {
            "sasl.login.callback.handler.class": _TOKEN_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": login.token.url,
            "sasl.jaas.config": jaas(
                login.mechanism,
                clientId=login.user,
                clientSecret=login.password,
                scope=login.token.scope,
            ),
        }
    elif login.mechanism:
        found["sasl.jaas.config"] = jaas(login.mechanism, username=login.user, password=login.password)
    return found


def librdkafka(login: Login) -> dict[str, str]:
    """Return the settings of librdkafka's clients in any language."""
    found = {"bootstrap.servers": login.bootstrap, "security.protocol": login.protocol.lower()}
    if login.authority:
        found["ssl.ca.location"] = login.authority_file
    if login.certificate is not None:
        found |= {
            "ssl.certificate.location": login.certificate.certificate_file,
            "ssl.key.location": login.certificate.key_file,
        }
    if login.mechanism:
        found["sasl.mechanism"] = login.mechanism
    if login.token is not None:
        found |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": login.token.url,
            "sasl.oauthbearer.client.id": login.user,
            "sasl.oauthbearer.client.secret": login.password,
            "sasl.oauthbearer.scope": login.token.scope,
        }
    elif login.mechanism:
        found |= {"sasl.username": login.user, "sasl.password": login.password}
    return found


def confluent_kafka(login: Login) -> dict[str, Any]:
    """Return the settings of confluent-kafka, which gets its tokens from a function."""
    found: dict[str, Any] = librdkafka(login)
    access = login.token
    if access is not None:
        found = {name: value for name, value in found.items() if not name.startswith("sasl.oauthbearer.")}
        # Report a future expiry even for an expired token, which the broker is to reject, not the client.
        found["oauth_cb"] = lambda _: (access.fetch(), time.time() + _TOKEN_LIFETIME_S)
    return found


def _python(login: Login) -> dict[str, Any]:
    """Return the settings that kafka-python and aiokafka have in common."""
    found: dict[str, Any] = {"bootstrap_servers": login.bootstrap}
    if login.authority:
        found["security_protocol"] = login.protocol
    if login.mechanism:
        found["sasl_mechanism"] = login.mechanism
    if login.mechanism and login.token is None:
        found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return found


def kafka_python(login: Login) -> dict[str, Any]:
    """Return the keyword arguments of kafka-python's clients."""
    found = _python(login)
    if login.authority:
        found["ssl_cafile"] = login.authority_file
    if login.certificate is not None:
        found |= {
            "ssl_certfile": login.certificate.certificate_file,
            "ssl_keyfile": login.certificate.key_file,
        }
    access = login.token
    if access is not None:
        fetch = access.fetch
        try:
            from kafka.net.sasl.oauth import AbstractTokenProvider
        except ImportError:  # kafka-python before 3
            from kafka.sasl.oauth import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return fetch()

        found["sasl_oauth_token_provider"] = Provider()
    return found


def aiokafka(login: Login) -> dict[str, Any]:
    """Return the keyword arguments of aiokafka's clients."""
    found = _python(login)
    if login.authority:
        context = found["ssl_context"] = ssl.create_default_context(cadata=login.authority)
        if login.certificate is not None:
            context.load_cert_chain(login.certificate.certificate_file, login.certificate.key_file)
    access = login.token
    if access is not None:
        fetch = access.fetch
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return fetch()

        found["sasl_oauth_token_provider"] = Provider()
    return found


def franz_go(login: Login) -> str:
    """Return the source file of a Go package `access`, whose function `Options` has the client's options."""
    imports = ['"github.com/twmb/franz-go/pkg/kgo"']
    before: list[str] = []
    servers = ", ".join(map(json.dumps, login.bootstrap.split(",")))
    options = [f"kgo.SeedBrokers({servers})"]
    if login.authority:
        imports += ['"crypto/tls"', '"crypto/x509"']
        before += [
            "roots := x509.NewCertPool()",
            f"roots.AppendCertsFromPEM([]byte({json.dumps(login.authority)}))",
            "config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}",
        ]
        options.append("kgo.DialTLSConfig(config)")
    if login.certificate is not None:
        own, key = json.dumps(login.certificate.certificate), json.dumps(login.certificate.key)
        before += [
            f"own, err := tls.X509KeyPair([]byte({own}), []byte({key}))",
            "if err != nil {\n\t\tpanic(err)\n\t}",
            "config.Certificates = []tls.Certificate{own}",
        ]
    user, password = json.dumps(login.user), json.dumps(login.password)
    functions = ""
    if login.token is not None:
        imports += ['"context"', '"encoding/json"', '"net/http"', '"net/url"']
        imports.append('"github.com/twmb/franz-go/pkg/sasl/oauth"')
        options.append("kgo.SASL(oauth.Oauth(token))")
        functions = _go_token(login.token, user, password)
    elif login.mechanism == "PLAIN":
        imports.append('"github.com/twmb/franz-go/pkg/sasl/plain"')
        options.append(f"kgo.SASL(plain.Auth{{User: {user}, Pass: {password}}}.AsMechanism())")
    elif login.mechanism:
        imports.append('"github.com/twmb/franz-go/pkg/sasl/scram"')
        options.append(f"kgo.SASL(scram.Auth{{User: {user}, Pass: {password}}}.AsSha512Mechanism())")
    listed = "".join(f"\t{each}\n" for each in sorted(imports))
    lines = "".join(f"\t{each}\n" for each in before)
    returned = "".join(f"\t\t{each},\n" for each in options)
    return (
        "// Package access has the options for kgo.NewClient: kgo.NewClient(access.Options()...)\n"
        f"package access\n\nimport (\n{listed})\n\n"
        "// Options logs in to the broker under test.\n"
        f"func Options() []kgo.Opt {{\n{lines}\treturn []kgo.Opt{{\n{returned}\t}}\n}}\n{functions}"
    )


def _go_token(access: TokenAccess, user: str, password: str) -> str:
    url, scope = json.dumps(access.url), json.dumps(access.scope)
    return f"""
func token(context.Context) (oauth.Auth, error) {{
	response, err := http.PostForm({url}, url.Values{{
		"grant_type": {{"client_credentials"}}, "scope": {{{scope}}},
		"client_id": {{{user}}}, "client_secret": {{{password}}},
	}})
	if err != nil {{
		return oauth.Auth{{}}, err
	}}
	defer response.Body.Close()
	var found struct {{
		Token string `json:"access_token"`
	}}
	err = json.NewDecoder(response.Body).Decode(&found)
	return oauth.Auth{{Token: found.Token}}, err
}}
"""


def kafkajs(login: Login) -> str:
    """Return the source file of a module that exports the argument of kafkajs's constructor."""
    parts = [f"brokers: {json.dumps(login.bootstrap.split(','))}"]
    if login.authority:
        own = {"ca": [login.authority]}
        if login.certificate is not None:
            own |= {"cert": login.certificate.certificate, "key": login.certificate.key}  # type: ignore[dict-item]
        parts.append(f"ssl: {json.dumps(own)}")
    sasl = {"mechanism": login.mechanism.lower(), "username": login.user, "password": login.password}
    before = ""
    if login.token is not None:
        before = _js_token(login.token, login.user, login.password)
        parts.append("sasl: { mechanism: 'oauthbearer', oauthBearerProvider: token }")
    elif login.mechanism:
        parts.append(f"sasl: {json.dumps(sasl)}")
    lines = "".join(f"  {part},\n" for part in parts)
    return f"// new Kafka(require('./kafkajs.js'))\n{before}module.exports = {{\n{lines}}}\n"


def _js_token(access: TokenAccess, user: str, password: str) -> str:
    form = {
        "grant_type": "client_credentials",
        "scope": access.scope,
        "client_id": user,
        "client_secret": password,
    }
    return f"""async function token() {{
  const body = new URLSearchParams({json.dumps(form)})
  const response = await fetch({json.dumps(access.url)}, {{ method: 'POST', body }})
  const found = await response.json()
  if (!response.ok) throw new Error(found.error_description || found.error)
  return {{ value: found.access_token }}
}}

"""


SETTINGS: Final[dict[str, Callable[[Login], Any]]] = {
    "java": java,
    "librdkafka": librdkafka,
    "confluent-kafka": confluent_kafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "franz-go": franz_go,
    "kafkajs": kafkajs,
}
"""Maps the kinds of clients to functions that return their settings."""


FILES: Final[dict[str, tuple[str, Callable[[Login], str]]]] = {
    "java": ("client.properties", lambda login: write_properties(java(login))),
    "librdkafka": (
        "librdkafka.conf",
        lambda login: "".join(f"{name}={value}\n" for name, value in librdkafka(login).items()),
    ),
    "franz-go": ("franz.go", franz_go),
    "kafkajs": ("kafkajs.js", kafkajs),
}
"""Maps the kinds of clients with settings files to the names and the contents of these files."""
