"""Which certificates may take the place of others while a listener runs (KIP-226, KIP-978)."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kafka_compat.config import ConfigError
from kafka_compat.security import distinguished_names
from kafka_compat.security.key_stores import KeyEntry, Stores
from kafka_compat.security.tls_settings import TlsSettings


def check_changes(settings: TlsSettings, old: Stores, new: Stores) -> None:
    """ConfigError where a listener may not take `new` in place of `old`: another name of the owner, unless
    ssl.allow.dn.changes; fewer names of hosts, unless ssl.allow.san.changes; stores where it had none.
    """
    if old.keys and not new.keys:
        raise _refused(
            settings,
            "keystore",
            "Cannot remove the SSL keystore from an existing listener for which a keystore was configured.",
        )
    if new.keys and not old.keys:
        raise _refused(
            settings,
            "keystore",
            "Cannot add SSL keystore to an existing listener for which no keystore was configured.",
        )
    if new.trusted is not None and old.trusted is None:
        raise _refused(
            settings,
            "truststore",
            "Cannot add SSL truststore to an existing listener for which no truststore was configured.",
        )
    allow_names, allow_hosts = settings.allow_dn_changes, settings.allow_san_changes
    if len(old.keys) != len(new.keys) and not (allow_names and allow_hosts):
        raise _refused(
            settings,
            "keystore",
            "Keystore entries do not match, "
            f"existing store contains {len(old.keys)} entries, new store contains {len(new.keys)} entries",
        )
    for before, after in zip(old.keys, new.keys, strict=False):
        if not allow_names and _name(before).casefold() != _name(after).casefold():
            raise _refused(
                settings,
                "keystore",
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias={before.alias}, DN={_name(before)}}}, "
                f"new={{alias={after.alias}, DN={_name(after)}}}",
                "expected the same owner, or ssl.allow.dn.changes=true",
            )
        if not allow_hosts and not _hosts(after) >= _hosts(before):
            raise _refused(
                settings,
                "keystore",
                "Keystore SubjectAltNames do not match:  "
                f"existing={{alias={before.alias}, SAN={_listed(_hosts(before))}}}, "
                f"new={{alias={after.alias}, SAN={_listed(_hosts(after))}}}",
                "expected the same names and more, or ssl.allow.san.changes=true",
            )


def _refused(settings: TlsSettings, store: str, sentence: str, expected: str = "") -> ConfigError:
    name = settings.named(f"ssl.{store}.location")
    return ConfigError(
        name, None, f"org.apache.kafka.common.config.ConfigException: {sentence}", expected, whole=True
    )


def _name(entry: KeyEntry) -> str:
    certificate = entry.chain[0].public_bytes(Encoding.DER)
    return distinguished_names.rfc2253(distinguished_names.subject(certificate))


def _hosts(entry: KeyEntry) -> frozenset[x509.GeneralName]:
    try:
        extension = entry.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(extension.value)


def _listed(names: Iterable[x509.GeneralName]) -> str:
    return f"[{', '.join(sorted(str(name.value) for name in names))}]"
