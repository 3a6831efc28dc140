"""Certificates for tests: certificate authorities, signed certificates, and key stores created by keytool."""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

STORE_PASSWORD = "store-secret"


class Identity(NamedTuple):
    """A private key and its certificate chain, which begins with its own certificate."""

    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...]

    def key_pem(self, password: str | None = None) -> str:
        """Return the key in PKCS8."""
        protection: KeySerializationEncryption = NoEncryption()
        if password is not None:
            protection = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection).decode()

    def chain_pem(self) -> str:
        """Return the certificate chain."""
        return pem(self.chain)

    def der(self) -> bytes:
        """Return the first certificate in DER."""
        return self.chain[0].public_bytes(Encoding.DER)


class Authority:
    """A certificate authority. With `signed_by`, it is an intermediate authority."""

    def __init__(self, name: str = "Test CA", signed_by: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = signed_by or self
        builder = _builder(subject, signed_by.certificate.subject if signed_by else subject, self.key)
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        self.certificate: x509.Certificate = builder.sign(signer.key, hashes.SHA256())
        self.above: tuple[x509.Certificate, ...] = (
            (signed_by.certificate, *signed_by.above) if signed_by else ()
        )

    def issue(
        self,
        name: str | x509.Name = "localhost",
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
        *,
        days: int = 100,
        with_root: bool = False,
    ) -> Identity:
        """Return a key and its certificate, valid for `days` days. A negative number means that it expired
        that many days ago.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        if isinstance(name, str):
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(name, self.certificate.subject, key, days)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(self.key, hashes.SHA256())
        above = (self.certificate, *self.above)
        return Identity(key, (certificate, *(above if with_root else above[:-1])))

    def pem(self) -> str:
        """Return the authority's certificate."""
        return pem([self.certificate])


@cache
def authority() -> Authority:
    """Return an authority shared by all tests that need no other."""
    return Authority()


def pem(certificates: Sequence[x509.Certificate]) -> str:
    """Return the certificates in PEM, one after another."""
    return "".join(item.public_bytes(Encoding.PEM).decode() for item in certificates)


def keytool(*arguments: str) -> str:
    """Run keytool, and return its output. Raises AssertionError if it fails."""
    quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-Xshare:auto")
    ran = subprocess.run(["keytool", *quick, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def java_key_store(path: Path, identity: Identity, kind: str = "PKCS12", key_password: str = "") -> Path:
    """Create a key store of the given kind with the alias `broker`, using keytool."""
    source = path.with_suffix(".source.p12")
    pair = path.with_suffix(".source.pem")
    pair.write_text(identity.key_pem() + identity.chain_pem())
    subprocess.run(
        [
            *("openssl", "pkcs12", "-export", "-in", pair, "-out", source, "-name", "broker"),
            *("-passout", f"pass:{STORE_PASSWORD}"),
        ],
        check=True,
        capture_output=True,
    )
    passwords = ["-srcstorepass", STORE_PASSWORD, "-deststorepass", STORE_PASSWORD]
    if key_password:
        passwords += ["-srcalias", "broker", "-destkeypass", key_password]
    keytool(
        *("-importkeystore", "-noprompt", "-srckeystore", str(source), "-destkeystore", str(path)),
        *("-srcstoretype", "PKCS12", "-deststoretype", kind, *passwords),
    )
    return path


def java_trust_store(path: Path, certificates: Sequence[x509.Certificate], kind: str = "PKCS12") -> Path:
    """Create a trust store of the given kind, using keytool."""
    for number, certificate in enumerate(certificates):
        source = path.with_suffix(f".{number}.pem")
        source.write_text(pem([certificate]))
        keytool(
            *("-importcert", "-noprompt", "-alias", f"ca{number}", "-file", str(source)),
            *("-keystore", str(path), "-storetype", kind, "-storepass", STORE_PASSWORD),
        )
    return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 100
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    first, last = sorted((now + timedelta(days=days), now - timedelta(days=1 if days > 0 else -2 * days)))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(last)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
