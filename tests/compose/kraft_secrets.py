"""The files in /etc/kafka/secrets that compose files name: key stores, passwords, and a JAAS file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from tests.compose.kraft_file import ComposeFile
from tests.support.certificates import Authority

PASSWORD: Final = "confluent"
USER: Final = ("alice", "alice-secret")
CA_FILE: Final = "ca.pem"
CLIENT_FILE: Final = "client.pem"
_JAAS: Final = """\
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="admin-secret"
    user_admin="admin-secret" user_alice="alice-secret";
};
"""


def write(file: ComposeFile, folder: Path) -> None:
    """Write every file that the services name, and the PEM files of a client."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broker_jaas.conf").write_text(_JAAS)
    authority = Authority()
    hosts = (*file.services, "localhost", "127.0.0.1")
    identity = authority.issue("kafka", hosts)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    key_store = pkcs12.serialize_key_and_certificates(
        b"broker", identity.key, identity.chain[0], identity.chain[1:], encryption
    )
    trusted = [pkcs12.PKCS12Certificate(authority.certificate, b"ca")]
    trust_store = pkcs12.serialize_java_truststore(trusted, encryption)
    for environment in file.services.values():
        for name, value in environment.items():
            path = folder / Path(value).name
            if name.endswith("_CREDENTIALS"):
                path.write_text(PASSWORD)
            elif "KEYSTORE_" in name and name.endswith(("_FILENAME", "_LOCATION")):
                path.write_bytes(key_store)
            elif "TRUSTSTORE_" in name and name.endswith(("_FILENAME", "_LOCATION")):
                path.write_bytes(trust_store)
    client = authority.issue("client", ["localhost"])
    (folder / CA_FILE).write_text(authority.pem())
    (folder / CLIENT_FILE).write_text(client.key_pem() + client.chain_pem())
    for path in folder.iterdir():
        path.chmod(0o644)
