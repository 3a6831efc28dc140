"""Diagnosis of a client's connection to a broker, step by step: from DNS and TCP to permissions.

The finding for a failed step states the remedy, and whether client, broker or network is the cause.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_compat.client.connection import Connection
from kafka_compat.client.connection_settings import ConnectionSettings
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import MetadataRequestTopic
from kafka_compat.security.sasl.client import Untrusted

_CLIENT_ID: Final = "kafka-compat-doctor"
_SEE_LOG: Final = "the broker's log states the reason, once per client address"
_HOST_MISMATCH: Final = (62, 64)
_NOT_YET_OR_NO_LONGER_VALID: Final = (9, 10)
_METADATA_VERSION: Final = 9
_QUORUM: Final = "quorum"
_DESCRIBE_GROUPS_VERSION: Final = 5
_OPERATIONS: Final = {3: "read", 4: "write", 6: "delete", 7: "alter", 8: "describe"}


class Finding(NamedTuple):
    """The result of one diagnostic step for one address. `side` names the cause of a failure: "client",
    "broker" or "network". `side` and `remedy` are "" if the step succeeded.
    """

    address: str
    step: str
    ok: bool
    text: str
    side: str = ""
    remedy: str = ""


class Wanted(NamedTuple):
    """Topics and groups for which to check the client's permissions."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class _Failed(Exception):
    """Raised by a diagnostic step that fails, with the text, side and remedy for the Finding."""

    def __init__(self, text: str, side: str, remedy: str) -> None:
        super().__init__(text)
        self.side, self.remedy = side, remedy


class Examination:
    """Diagnosis of the bootstrap addresses, and then of all other brokers in the metadata."""

    def __init__(self, settings: ConnectionSettings, wanted: Wanted) -> None:
        self._settings = settings
        self._wanted = wanted
        self.brokers: dict[int, tuple[str, int]] = {}
        self._apis: set[int] = set()

    def all(self, bootstrap: list[tuple[str, int]]) -> Iterator[Finding]:
        """Yield the findings for the bootstrap addresses, and then for all other brokers in the metadata."""
        seen = set()
        for host, port in bootstrap:
            seen.add((host, port))
            yield from self.one(host, port, rights=True)
        for address in list(self.brokers.values()):
            if address not in seen:
                seen.add(address)
                yield from self.one(*address, rights=False)

    def one(self, host: str, port: int, *, rights: bool) -> Iterator[Finding]:
        """Yield the findings for one address. Stop if a step fails, unless it checks permissions."""
        address = f"{host}:{port}"
        steps: list[tuple[str, Callable[[], str]]] = [
            ("name", lambda: _resolve(host, port)),
            ("connection", lambda: self._connect(host, port)),
        ]
        if self._settings.tls is not None:
            steps.append(("TLS", lambda: self._encrypt(host, port)))
        steps.append(("protocol", lambda: self._versions(host, port)))
        if self._settings.mechanism is not None:
            steps.append(("mechanism", self._choose))
            if self._settings.new_client is not None:
                steps.append(("login", lambda: self._log_in(host)))
        if self._settings.mechanism is None or self._settings.new_client is not None:
            steps.append(("metadata", self._metadata))
            if rights:
                steps.append((_QUORUM, self._quorum))
                steps += [(f"topic {name}", partial(self._topic, name)) for name in self._wanted.topics]
                steps += [(f"group {name}", partial(self._group, name)) for name in self._wanted.groups]
        self._dial: Connection | None = None
        self._connection: socket.socket | None = None
        try:
            for step, work in steps:
                if step == _QUORUM and ApiKey.DESCRIBE_QUORUM not in self._apis:
                    continue
                try:
                    yield Finding(address, step, True, work())
                except _Failed as failed:
                    yield Finding(address, step, False, str(failed), failed.side, failed.remedy)
                    if not step.startswith((_QUORUM, "topic ", "group ")):
                        return
        finally:
            if self._connection is not None:
                self._connection.close()

    # --- steps

    def _connect(self, host: str, port: int) -> str:
        try:
            self._connection = socket.create_connection((host, port), self._settings.timeout_s)
        except ConnectionRefusedError:
            raise _Failed(
                "connection refused: nothing listens at this address",
                "broker",
                "start the broker, or correct the address: --bootstrap-server here, or listeners and "
                "advertised.listeners of the broker",
            ) from None
        except TimeoutError:
            raise _Failed(
                "no response",
                "network",
                "check firewalls, and whether the name resolves to the right machine",
            ) from None
        except OSError as error:
            raise _Failed(
                str(error), "network", "check that the broker's machine is reachable from here"
            ) from None
        self._dial = Connection(self._connection, _CLIENT_ID)
        return "accepted"

    def _encrypt(self, host: str, port: int) -> str:
        assert self._settings.tls is not None and self._connection is not None
        try:
            self._connection = self._settings.tls.wrap_socket(self._connection, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise _of_certificate(host, error) from None
        except (OSError, EOFError) as error:
            if self._speaks_plainly(host, port):
                plain = self._advice("SSL", "PLAINTEXT")
                raise _Failed(
                    "the listener does not use TLS",
                    "client",
                    f"set {plain}, or connect to a listener that uses TLS",
                ) from None
            if isinstance(error, ssl.SSLError):
                raise self._of_alert(error) from None
            raise _Failed(f"the handshake failed: {_reason(error)}", "broker", _SEE_LOG) from None
        self._dial = Connection(self._connection, _CLIENT_ID)
        return f"{self._connection.version()}, the certificate is trusted and names {host}"

    def _advice(self, instead_of: str, layer: str) -> str:
        """Return advice to change the security protocol. A client without SASL settings cannot determine
        whether the listener requires SASL.
        """
        protocol = self._settings.security_protocol.replace(instead_of, layer)
        if protocol == layer:
            return f"security.protocol={layer} (SASL_{layer} if the listener requires a login)"
        return f"security.protocol={protocol}"

    def _versions(self, host: str, port: int) -> str:
        assert self._dial is not None
        try:
            answer = self._dial.ask(ApiKey.API_VERSIONS, 0)
        except ssl.SSLError as error:
            raise self._of_alert(error) from None
        except (OSError, EOFError, ValueError) as error:
            if self._settings.tls is None and self._speaks_tls(host, port):
                with_tls = self._advice("PLAINTEXT", "SSL")
                raise _Failed(
                    "the listener requires TLS",
                    "client",
                    f"set {with_tls}, and ssl.truststore.location to the CA that signed its certificate",
                ) from None
            raise _Failed(f"{error}", "broker", "check that this is the port of a Kafka broker") from None
        self._apis = {each.api_key for each in answer.api_keys}
        if ApiKey.VOTE in self._apis and ApiKey.METADATA not in self._apis:
            raise _Failed(
                "a controller of the metadata quorum, which does not serve clients",
                "client",
                "connect to a listener of a broker instead of one in controller.listener.names",
            )
        return f"a Kafka broker with {len(answer.api_keys)} APIs"

    def _choose(self) -> str:
        assert self._dial is not None
        answer = self._asked(ApiKey.SASL_HANDSHAKE, 1, mechanism=self._settings.mechanism)
        offered = ", ".join(answer.mechanisms)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise _Failed(
                f"the listener does not support {self._settings.mechanism}, only {offered}",
                "client",
                "set sasl.mechanism to one of these, or add it to the broker's sasl.enabled.mechanisms",
            )
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise _Failed(
                "the listener does not authenticate clients",
                "client",
                f"set security.protocol={self._settings.security_protocol.removeprefix('SASL_')}",
            )
        return f"{self._settings.mechanism}, offered: {offered}"

    def _log_in(self, host: str) -> str:
        assert self._dial is not None and self._settings.new_client is not None
        token: bytes | None
        try:
            client = self._settings.new_client(host)
            token = client.first()
        except Untrusted as error:
            raise _Failed(
                str(error), "client", "check sasl.jaas.config, and the service that issues credentials"
            ) from None
        lifetime_ms = 0
        while token is not None:
            answer = self._asked(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=token)
            if answer.error_code:
                raise _Failed(
                    answer.error_message or ErrorCode(answer.error_code).name,
                    "client",
                    "check the user name and password in sasl.jaas.config; the broker's log has details",
                )
            lifetime_ms = answer.session_lifetime_ms
            try:
                token = client.next(bytes(answer.auth_bytes))
            except Untrusted as error:
                raise _Failed(
                    str(error), "broker", "check that this is the right broker: it did not prove its identity"
                ) from None
        lasts = f"; the session expires in {lifetime_ms} ms" if lifetime_ms else ""
        return f"authenticated{lasts}"

    def _metadata(self) -> str:
        answer = self._asked(ApiKey.METADATA, _METADATA_VERSION, topics=[])
        self.brokers |= {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        listed = ", ".join(f"{one.node_id} at {one.host}:{one.port}" for one in answer.brokers)
        if not answer.brokers:
            raise _Failed(
                "it lists no brokers yet", "broker", "check in the broker's log that there is a controller"
            )
        return f"broker{'s' if len(answer.brokers) > 1 else ''} {listed}"

    def _quorum(self) -> str:
        from kafka_compat.protocol.messages.describe_quorum import PartitionData, TopicData

        asked = [TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
        answer = self._asked(ApiKey.DESCRIBE_QUORUM, 0, topics=asked)
        found = answer.topics[0].partitions[0] if answer.topics and answer.topics[0].partitions else answer
        code = answer.error_code or found.error_code
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return "not checked: this user is not permitted to describe the cluster"
        if code:
            raise _Failed(
                f"the metadata quorum does not respond ({known_code(code).name}): topics and leaders cannot "
                "change",
                "broker",
                "start the voters in controller.quorum.voters: a majority must run",
            )
        end = max(each.log_end_offset for each in found.current_voters)
        voters = ", ".join(
            f"{each.replica_id} (lag {end - each.log_end_offset})" for each in found.current_voters
        )
        return f"leader {found.leader_id} in epoch {found.leader_epoch}, voters {voters}"

    def _topic(self, name: str) -> str:
        answer = self._asked(
            ApiKey.METADATA,
            _METADATA_VERSION,
            topics=[MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        (topic,) = answer.topics
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise self._no_right("topic", name)
        if topic.error_code:
            raise _Failed(ErrorCode(topic.error_code).name, "broker", "create the topic, or check its name")
        return _rights(topic.topic_authorized_operations)

    def _group(self, name: str) -> str:
        answer = self._asked(
            ApiKey.DESCRIBE_GROUPS,
            _DESCRIBE_GROUPS_VERSION,
            groups=[name],
            include_authorized_operations=True,
        )
        (group,) = answer.groups
        if group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise self._no_right("group", name)
        if group.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            # The permission was granted: brokers check it before they look for the group's coordinator.
            return f"permitted: describe; the rest was not checked: {self._why_no_coordinator()}"
        if group.error_code:
            raise _Failed(ErrorCode(group.error_code).name, "broker", "the broker's log states the reason")
        return _rights(group.authorized_operations)

    # --- helpers

    def _why_no_coordinator(self) -> str:
        offsets = [MetadataRequestTopic(name="__consumer_offsets")]
        answer = self._asked(
            ApiKey.METADATA, _METADATA_VERSION, topics=offsets, allow_auto_topic_creation=False
        )
        if answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return "the cluster has no groups yet"
        others = len(self.brokers) > 1
        return "its coordinator is another broker" if others else "its coordinator is not available"

    def _no_right(self, kind: str, name: str) -> _Failed:
        is_anonymous = self._settings.tls is None and self._settings.mechanism is None
        return _Failed(
            f"this user is not permitted to describe the {kind}",
            "broker",
            "as an administrator, run kafka-acls --bootstrap-server … --add --allow-principal "
            f"User:{'ANONYMOUS' if is_anonymous else 'NAME'} --operation Read --{kind} {name}"
            f"{', or --operation Write for producers' if kind == 'topic' else ''}",
        )

    def _asked(self, key: ApiKey, version: int, **request: Any) -> Any:
        assert self._dial is not None
        try:
            return self._dial.ask(key, version, **request)
        except ssl.SSLError as error:
            raise self._of_alert(error) from None
        except EOFError:
            if key is ApiKey.METADATA and self._settings.mechanism is None:
                sasl = "SASL_SSL" if self._settings.tls is not None else "SASL_PLAINTEXT"
                raise _Failed(
                    "the broker closed the connection: the listener requires authentication",
                    "client",
                    f"set security.protocol={sasl}, sasl.mechanism and sasl.jaas.config",
                ) from None
            raise _Failed("the broker closed the connection", "broker", _SEE_LOG) from None
        except (OSError, ValueError) as error:
            raise _Failed(str(error), "broker", "the broker's log has details") from None

    def _of_alert(self, error: ssl.SSLError) -> _Failed:
        reason = error.reason or ""
        if self._settings.invalid_certificate is not None and "ALERT" in reason:
            return _Failed(
                f"the broker rejects the client's certificate, which {self._settings.invalid_certificate}",
                "client",
                "replace the certificate in ssl.keystore.location",
            )
        if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
            return _Failed(
                "the broker requires a client certificate",
                "client",
                "set ssl.keystore.location, or ssl.client.auth=none on the listener",
            )
        if "CERTIFICATE_EXPIRED" in reason:
            return _Failed(
                "the broker reports that the client's certificate has expired",
                "client",
                "compare the certificate's dates with the clocks of both machines",
            )
        if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason or "DECRYPT_ERROR" in reason:
            return _Failed(
                "the broker does not trust the client's certificate",
                "broker",
                "add the CA that signed it to the broker's ssl.truststore.location",
            )
        return _Failed(f"TLS failed: {_reason(error)}", "broker", _SEE_LOG)

    def _speaks_plainly(self, host: str, port: int) -> bool:
        try:
            with socket.create_connection((host, port), self._settings.timeout_s) as connection:
                Connection(connection, _CLIENT_ID).ask(ApiKey.API_VERSIONS, 0)
        except (OSError, EOFError, ValueError):
            return False
        return True

    def _speaks_tls(self, host: str, port: int) -> bool:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with socket.create_connection((host, port), self._settings.timeout_s) as connection:
                context.wrap_socket(connection).close()
        except OSError:
            return False
        return True


def _resolve(host: str, port: int) -> str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _Failed(
            f"the name {host} does not resolve on this machine",
            "network",
            "set the broker's advertised.listeners to a name that clients can resolve, or add the name here",
        ) from None
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return f"resolves to {', '.join(addresses)}"


def _of_certificate(host: str, error: ssl.SSLCertVerificationError) -> _Failed:
    if error.verify_code in _HOST_MISMATCH:
        return _Failed(
            f"the certificate does not contain the name {host}",
            "broker",
            "issue a certificate with this name, or advertise a name that it contains (advertised.listeners)",
        )
    if error.verify_code in _NOT_YET_OR_NO_LONGER_VALID:
        return _Failed(
            f"the certificate is not valid now: {error.verify_message}", "broker", "renew the certificate"
        )
    return _Failed(
        f"the client does not trust the issuer of the certificate: {error.verify_message}",
        "client",
        "add the CA that signed the broker's certificate to ssl.truststore.location",
    )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return reason.replace("_", " ").lower() if isinstance(reason, str) else str(error)


def _rights(operations: int) -> str:
    if operations < 0:
        return "the broker does not report permissions"
    allowed = [name for bit, name in _OPERATIONS.items() if operations >> bit & 1]
    return f"permitted: {', '.join(allowed)}" if allowed else "nothing is permitted"
