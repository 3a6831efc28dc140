"""Makes an authority and the certificates of brokers for those who have none."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3650
_COMMON_NAME_MAX: Final = 64
_CLOCKS_APART: Final = timedelta(hours=1)
"""How far behind the clock of whoever looks at a new certificate may be."""


class Issued(NamedTuple):
    """PEM: a private key in PKCS8, and its certificate."""

    key: bytes
    certificate: bytes


class NewAuthority:
    """A certificate authority that signs brokers' certificates, and no other authorities."""

    def __init__(self, name: str, now: datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = _builder(self._name, self._name, self._key, now, AUTHORITY_DAYS)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_usage(signs_certificates=True), critical=True)
        self.issued = Issued(_private(self._key), _pem(own.sign(self._key, hashes.SHA256())))

    def issue(self, hosts: Sequence[str], days: int) -> Issued:
        """For a broker that is reached by these names and addresses; it may show it to other brokers, too."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = hosts[0] if len(hosts[0]) <= _COMMON_NAME_MAX else "kafka-compat broker"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self._name, key, self._now, days)
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
