"""Generate, in memory, the files for brokers with TLS and SCRAM, and for their clients.

The files contain a certificate authority, a certificate for each broker, users with random passwords, and
settings for the brokers and for each kind of client. No I/O, except for random numbers.
"""

import ipaddress
import json
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Final, NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafka_compat.config.properties import write_properties
from kafka_compat.security import first_users
from kafka_compat.security import scram_credential as scram
from kafka_compat.security.first_users import Users

AUTHORITY_DAYS: Final = 3650
_COMMON_NAME_MAX: Final = 64
_CLOCKS_APART: Final = timedelta(hours=1)
"""Tolerated clock difference between this machine and peers that verify a new certificate."""


class Issued(NamedTuple):
    """A private key in PKCS8 and its certificate, both as PEM."""

    key: bytes
    certificate: bytes


class NewAuthority:
    """A certificate authority for brokers' certificates. It cannot certify other authorities."""

    def __init__(self, name: str, now: datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = _builder(self._name, self._name, self._key, now, AUTHORITY_DAYS)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_usage(signs_certificates=True), critical=True)
        self.issued = Issued(_private(self._key), _pem(own.sign(self._key, hashes.SHA256())))

    def issue(self, hosts: Sequence[str], days: int, now: datetime | None = None) -> Issued:
        """Create a certificate for a broker with these names and addresses, valid for servers and clients,
        for `days` days from `now`, by default from the time at which the authority was created.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        name = hosts[0] if len(hosts[0]) <= _COMMON_NAME_MAX else "kafka-compat broker"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self._name, key, now or self._now, days)
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            builder.add_extension(names, critical=False)
            .add_extension(purposes, critical=False)
            .add_extension(signer, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
        )
        return Issued(_private(key), _pem(builder.sign(self._key, hashes.SHA256())))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_APART)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


MECHANISM: Final = "SCRAM-SHA-512"
ADMIN: Final = "admin"
BROKER: Final = "broker"
"""The user with which brokers log in to each other."""

_LISTENER: Final = "SASL_SSL"
_ITERATIONS: Final = 8192
_PASSWORD_BYTES: Final = 24
_HOST: Final = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*"
)
_USER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


class WishError(Exception):
    """Raised for an invalid request. The message contains the reason and valid alternatives."""


class Address(NamedTuple):
    """The address at which clients reach a broker."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `HOST:PORT`, with brackets around an IPv6 address. Raises WishError if it is invalid."""
        host, _, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise WishError(f"{text} is not an address: expected HOST:PORT, such as broker1.example.com:9093")
        return cls(checked_host(host), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Wish(NamedTuple):
    """A request to generate files for the directory `folder`, an absolute path.

    `advertised` contains an address for each broker, `hosts` the machines' additional names and addresses,
    and `users` all users except admin. With `everywhere`, brokers listen on all interfaces instead of
    127.0.0.1.
    """

    folder: PurePath
    advertised: tuple[Address, ...]
    hosts: tuple[str, ...]
    users: tuple[str, ...]
    days: int
    everywhere: bool
    zookeeper: str | None = None


class Provision(NamedTuple):
    """The generated files. `files` maps paths to contents, `clients` maps users to the directories of their
    client files, and `servers` contains the paths of the brokers' settings files.
    """

    files: dict[PurePath, bytes]
    clients: dict[str, PurePath]
    servers: tuple[PurePath, ...]
    bootstrap: str


def checked_host(host: str) -> str:
    """Return a host name or address in ASCII. Raises WishError if it is not valid in a certificate."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name):
        raise WishError(f"{host!r} is neither a host name nor an address")
    return name


def provide(wish: Wish, now: datetime) -> Provision:
    """Generate all files. Raises WishError if the request is invalid."""
    _check(wish)
    authority = NewAuthority(f"kafka-compat CA {secrets.token_hex(4)}", now)
    names = dict.fromkeys((ADMIN, *wish.users))
    passwords = {name: secrets.token_urlsafe(_PASSWORD_BYTES) for name in (*names, BROKER)}
    bootstrap = ",".join(map(str, wish.advertised))
    files = {
        PurePath("ca.pem"): authority.issued.certificate,
        PurePath("ca.key"): authority.issued.key,
        PurePath("users.json"): first_users.encode(_credentials(passwords)),
    }
    clients = {}
    for name in names:
        folder = clients[name] = PurePath("clients", name)
        certificate = authority.issued.certificate.decode()
        access = Access(bootstrap, name, passwords[name], certificate, wish.folder / folder)
        files.update({folder / file: text.encode() for file, text in client_files(access).items()})
    servers = []
    for number, address in enumerate(wish.advertised, 1):
        suffix = f"-{number}" if len(wish.advertised) > 1 else ""
        keys, server = PurePath(f"server{suffix}.pem"), PurePath(f"server{suffix}.properties")
        issued = authority.issue(list(dict.fromkeys((address.host, *wish.hosts, *_THIS_MACHINE))), wish.days)
        # Kafka requires the key and the certificate in one file.
        files[keys] = issued.key + issued.certificate
        files[server] = _server_properties(wish, number, address, keys, passwords[BROKER]).encode()
        servers.append(server)
    return Provision(files, clients, tuple(servers), bootstrap)


def _check(wish: Wish) -> None:
    for user in wish.users:
        if not _USER.fullmatch(user):
            raise WishError(
                f"{user!r} is not a valid user name: expected at most 64 letters, digits and . _ @ -"
            )
        if user == BROKER:
            raise WishError(f"brokers authenticate to each other as {BROKER}; choose another name")
    if len(wish.advertised) > 1 and not wish.zookeeper:
        raise WishError(
            "several brokers need ZooKeeper: give --zookeeper HOST:PORT, or only one --advertised"
        )
    if len(set(wish.advertised)) < len(wish.advertised):
        raise WishError("two brokers cannot have the same address")


def _credentials(passwords: dict[str, str]) -> Users:
    return {
        name: {MECHANISM: scram.from_password(password, secrets.token_bytes(16), _ITERATIONS, MECHANISM)}
        for name, password in passwords.items()
    }


def _server_properties(wish: Wish, number: int, address: Address, keys: PurePath, password: str) -> str:
    prefix = f"listener.name.{_LISTENER.lower()}"
    login = f"{prefix}.{MECHANISM.lower()}.sasl.jaas.config"
    bound = "" if wish.everywhere else "127.0.0.1"
    several = len(wish.advertised) > 1
    sections: list[tuple[str, dict[str, str]]] = [
        (
            "Listeners, and the addresses that clients connect to.",
            {
                "broker.id": str(number),
                "listeners": f"{_LISTENER}://{bound}:{address.port}",
                "advertised.listeners": f"{_LISTENER}://{address}",
                "inter.broker.listener.name": _LISTENER,
                "log.dirs": str(wish.folder / (f"data-{number}" if several else "data")),
                **({"zookeeper.connect": wish.zookeeper} if wish.zookeeper else {}),
            },
        ),
        (
            "TLS: the broker uses server.pem, and trusts certificates signed by the CA in this directory.",
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(wish.folder / keys),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(wish.folder / "ca.pem"),
            },
        ),
        (
            "Authentication: users with SCRAM credentials. Brokers authenticate to each other, too.",
            {
                "sasl.enabled.mechanisms": MECHANISM,
                "sasl.mechanism.inter.broker.protocol": MECHANISM,
                login: jaas(BROKER, password),
                first_users.SETTING: str(wish.folder / "users.json"),
            },
        ),
        (
            "Authorization: super users may do everything, other users what an ACL allows.",
            {
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "super.users": f"User:{ADMIN};User:{BROKER}",
            },
        ),
    ]
    return "\n".join(f"# {about}\n{write_properties(settings)}" for about, settings in sections)


class Access(NamedTuple):
    """The connection data of one user. `authority` is the certificate to trust, as PEM; `folder` is the
    directory in which the files will be stored, including the certificate as ca.pem.
    """

    bootstrap: str
    user: str
    password: str
    authority: str
    folder: PurePath


def client_files(access: Access) -> dict[str, str]:
    """Return the contents of the client files by name, for every supported kind of client."""
    return {
        "ca.pem": access.authority,
        "client.properties": _java(access),
        "librdkafka.conf": _librdkafka(access),
        "kafka_python_settings.py": _kafka_python(access),
        "aiokafka_settings.py": _aiokafka(access),
        "franz.go": _franz_go(access),
        "kafkajs.js": _kafkajs(access),
        "spark_options.py": _spark(access),
    }


def jaas(user: str, password: str) -> str:
    """Return a value for sasl.jaas.config. The arguments must not contain quotation marks or backslashes."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


def _java(access: Access) -> str:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": jaas(access.user, access.password),
        "ssl.truststore.type": "PEM",
        # Include the certificate in the settings, so that the file can be copied to other machines.
        "ssl.truststore.certificates": access.authority,
    }
    about = (
        "Java clients from 2.7 on, and Kafka's tools: --command-config, --producer.config, --consumer.config"
    )
    return f"# {about}\n{write_properties(settings)}"


def _librdkafka(access: Access) -> str:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": MECHANISM,
        "sasl.username": access.user,
        "sasl.password": access.password,
        "ssl.ca.location": str(access.folder / "ca.pem"),
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    return f"# librdkafka: kcat -F librdkafka.conf; all clients of it take these settings\n{lines}"


def _python_settings(access: Access, more: str) -> str:
    return (
        "SETTINGS = {\n"
        f'    "bootstrap_servers": {json.dumps(access.bootstrap)},\n'
        '    "security_protocol": "SASL_SSL",\n'
        f'    "sasl_mechanism": "{MECHANISM}",\n'
        f'    "sasl_plain_username": {json.dumps(access.user)},\n'
        f'    "sasl_plain_password": {json.dumps(access.password)},\n'
        f"    {more},\n"
        "}\n"
    )


def _kafka_python(access: Access) -> str:
    return (
        '"""from kafka_python_settings import SETTINGS; KafkaProducer(**SETTINGS)"""\n\n'
        "from pathlib import Path\n\n"
        + _python_settings(access, '"ssl_cafile": str(Path(__file__).with_name("ca.pem"))')
    )


def _aiokafka(access: Access) -> str:
    return (
        '"""from aiokafka_settings import SETTINGS; AIOKafkaProducer(**SETTINGS)"""\n\n'
        "import ssl\nfrom pathlib import Path\n\n"
        + _python_settings(
            access, '"ssl_context": ssl.create_default_context(cafile=Path(__file__).with_name("ca.pem"))'
        )
    )


def _franz_go(access: Access) -> str:
    servers = ", ".join(json.dumps(server) for server in access.bootstrap.split(","))
    return f"""// Package access has what kgo.NewClient needs: kgo.NewClient(access.Options()...)
package access

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const authority = `{access.authority}`

// Options are those of the user {access.user}.
func Options() []kgo.Opt {{
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	login := scram.Auth{{User: {json.dumps(access.user)}, Pass: {json.dumps(access.password)}}}
	return []kgo.Opt{{
		kgo.SeedBrokers({servers}),
		kgo.DialTLSConfig(&tls.Config{{RootCAs: roots, MinVersion: tls.VersionTLS12}}),
		kgo.SASL(login.AsSha512Mechanism()),
	}}
}}
"""


def _kafkajs(access: Access) -> str:
    return f"""// new Kafka(require('./kafkajs.js'))
const fs = require('fs')
const path = require('path')

module.exports = {{
  brokers: {json.dumps(access.bootstrap.split(","))},
  ssl: {{ ca: [fs.readFileSync(path.join(__dirname, 'ca.pem'), 'utf-8')] }},
  sasl: {{
    mechanism: 'scram-sha-512',
    username: {json.dumps(access.user)},
    password: {json.dumps(access.password)},
  }},
}}
"""


def _spark(access: Access) -> str:
    options = {
        "kafka.bootstrap.servers": access.bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": MECHANISM,
        "kafka.sasl.jaas.config": jaas(access.user, access.password),
        "kafka.ssl.truststore.type": "PEM",
        # Include the certificate in the options, because executors on other machines do not have the file.
        "kafka.ssl.truststore.certificates": access.authority,
    }
    lines = "".join(f"    {json.dumps(name)}: {json.dumps(value)},\n" for name, value in options.items())
    about = 'spark.read.format("kafka").options(**OPTIONS).option("subscribe", "topic").load()'
    return f"# from spark_options import OPTIONS; {about}\nOPTIONS = {{\n{lines}}}\n"
