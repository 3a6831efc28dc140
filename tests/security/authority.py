"""A certificate authority for tests, which issues certificates as PEM files."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_AGE = timedelta(days=365)


class Signed(NamedTuple):
    """The files of a certificate. `store` contains key and certificate, as Kafka's PEM key stores do."""

    certificate: Path
    key: Path
    store: Path


class Authority:
    """A certificate authority with an EC key. `file` is its own certificate."""

    def __init__(self, directory: Path, name: str = "Test CA") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        usage = x509.BasicConstraints(ca=True, path_length=None)
        own = self._builder(self._name, self._key).add_extension(usage, critical=True)
        self.file = directory / f"{name.replace(' ', '-').lower()}.pem"
        self.file.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def sign(self, name: str, *hosts: str) -> Signed:
        """Issue a certificate with the common name `name`, by default for localhost and 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [_general_name(host) for host in hosts or ("localhost", "127.0.0.1")]
        )
        signed = self._builder(_name(name), key).add_extension(names, critical=False)
        certificate = _pem(signed.sign(self._key, hashes.SHA256()))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        files = Signed(*(self._directory / f"{name}.{suffix}" for suffix in ("crt", "key", "pem")))
        files.certificate.write_bytes(certificate)
        files.key.write_bytes(private)
        files.store.write_bytes(private + certificate)
        return files

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + _AGE)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
