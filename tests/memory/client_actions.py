"""Actions of clients that create and remove state on a broker. All names contain MARK."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import ScramClient
from tests.conformance.batches import CRC_AT, LAST_OFFSET_DELTA_AT, batch, changed
from tests.conformance.group_requests import join
from tests.conformance.record_requests import fetch_request, produce_request
from tests.conformance.wire import Connection, Plain
from tests.memory.churn import churn_once
from tests.memory.leftover_objects import MARK
from tests.security.logins import Login, Refused, TlsConnection
from tests.support.acl_requests import acl, taking
from tests.support.process import wait_until

PATIENCE_S = 20
TOPIC = f"{MARK}-topic"
GROUP = f"{MARK}-group"
TRANSACTIONAL_ID = f"{MARK}-transactional-id"
USER = f"{MARK}-user"
PASSWORD = f"{MARK}-password"
CLIENT = f"{MARK}-client"
_SHORT_SESSION_MS = 1000
_PENDING = (14, 15, 16, 51, 68)
"""Errors after which a request is repeated: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
NOT_COORDINATOR, CONCURRENT_TRANSACTIONS and NON_EMPTY_GROUP.
"""


class Place(NamedTuple):
    """The addresses of a broker's listeners."""

    plain: str
    tls: str
    sasl: str


Act = Callable[[Place], None]


def connect(place: Place) -> Connection:
    return Connection(place.plain, client_id=CLIENT)


def settled(
    connection: Connection,
    key: ApiKey,
    version: int,
    request: Plain,
    *path: str | int,
    accepted: Sequence[int] = (0,),
) -> Plain:
    """Repeat the request while the error code at `path` is temporary, and return the response, whose error
    code must be one of `accepted`.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        answer = connection.ask(key, version, request)
        found = answer
        for step in path:
            found = found[step]  # type: ignore[index]
        if found["error_code"] not in _PENDING or time.monotonic() > deadline_s:
            assert found["error_code"] in accepted, answer
            return answer
        time.sleep(0.02)  # retry interval


@contextmanager
def topic(connection: Connection, configs: dict[str, str] | None = None) -> Iterator[None]:
    """Create TOPIC with two partitions, and delete it at the end."""
    listed = [{"name": name, "value": value} for name, value in (configs or {}).items()]
    wanted = {"name": TOPIC, "num_partitions": 2, "replication_factor": 1, "configs": listed}
    answer = connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [wanted], "timeout_ms": 10_000})
    assert answer["topics"][0]["error_code"] == 0
    try:
        yield
    finally:
        request = {"topic_names": [TOPIC], "timeout_ms": 10_000}
        with Connection(connection_address(connection)) as another:
            assert another.ask(ApiKey.DELETE_TOPICS, 5, request)["responses"][0]["error_code"] == 0


def connection_address(connection: Connection) -> str:
    host, port = connection._socket.getpeername()[:2]
    return f"{host}:{port}"


def produce(connection: Connection, records: bytes, error: int = 0, **more: object) -> None:
    answer = connection.ask(ApiKey.PRODUCE, 9, produce_request(TOPIC, records, **more))  # type: ignore[arg-type]
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == error, answer


# Connections


def a_connection(place: Place) -> None:
    with connect(place) as connection:
        connection.ask(ApiKey.API_VERSIONS, 3, {"client_software_name": MARK, "client_software_version": "1"})


def a_connection_in_the_middle_of_a_request(place: Place) -> None:
    with connect(place) as connection:
        connection.ask(ApiKey.API_VERSIONS, 0, {})
        connection.send(b"\0\0\1\0\0\0")


def a_connection_that_sends_rubbish(place: Place) -> None:
    with connect(place) as connection:
        connection.ask(ApiKey.API_VERSIONS, 0, {})
        connection.send(b"\0\0\0\x14" + bytes([255] * 20))
        assert connection.closed_by_peer()


def a_tls_connection(place: Place) -> None:
    with TlsConnection(place.tls, client_id=CLIENT) as connection:
        connection.ask(ApiKey.API_VERSIONS, 0, {})


def a_failed_tls_handshake(place: Place) -> None:
    with Connection(place.tls, client_id=CLIENT) as connection:
        connection.send(b"no TLS at all, " + MARK.encode())
        with contextlib.suppress(AssertionError):
            connection.closed_by_peer()


@contextmanager
def user(place: Place) -> Iterator[Connection]:
    """Create USER, yield a connection authenticated as that user, and delete the user at the end."""
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt", 4096)
    upsertion = {"name": USER, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": salted}
    with connect(place) as admin:
        request: Plain = {"deletions": [], "upsertions": [upsertion]}
        answer = admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert answer["results"][0]["error_code"] == 0
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                client = ScramClient("SCRAM-SHA-256", USER, PASSWORD)
                login = Login(Connection(place.sasl, client_id=CLIENT), "SCRAM-SHA-256", client)
                break
            except Refused:  # the broker does not know the user yet
                assert time.monotonic() < deadline_s
        with login.connection as connection:
            yield connection
        request = {"deletions": [{"name": USER, "mechanism": 1}], "upsertions": []}
        answer = admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert answer["results"][0]["error_code"] == 0


def a_login_of_a_user_who_is_created_and_deleted(place: Place) -> None:
    with user(place) as connection:
        connection.ask(ApiKey.METADATA, 7, {"topics": [], "allow_auto_topic_creation": False})


def a_delegation_token(place: Place) -> None:
    with user(place) as connection:
        request: Plain = {"renewers": [{"principal_type": "User", "principal_name": f"{USER}-renewer"}]}
        token = connection.ask(ApiKey.CREATE_DELEGATION_TOKEN, 2, request | {"max_lifetime_ms": 60_000})
        assert token["error_code"] == 0, token
        request = {"hmac": token["hmac"], "expiry_time_period_ms": -1}
        deadline_s = time.monotonic() + PATIENCE_S
        while (code := connection.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request)["error_code"]) != 0:
            # The broker does not know the token yet.
            assert code == 62
            assert time.monotonic() < deadline_s


def an_acl(place: Place) -> None:
    with connect(place) as connection:
        allowed = acl(TOPIC, principal=f"User:{USER}")
        answer = connection.ask(ApiKey.CREATE_ACLS, 3, {"creations": [allowed]})
        assert answer["results"][0]["error_code"] == 0, answer
        wanted = taking(resource_name_filter=TOPIC)
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            (found,) = connection.ask(ApiKey.DELETE_ACLS, 3, {"filters": [wanted]})["filter_results"]
            if found["matching_acls"]:
                break
            assert time.monotonic() < deadline_s


def a_refused_login(place: Place) -> None:
    connection = Connection(place.sasl, client_id=CLIENT)
    try:
        # Use a name without MARK, because the broker remembers recently logged names of some peers for a
        # while.
        Login(connection, "SCRAM-SHA-256", ScramClient("SCRAM-SHA-256", "unknown", "wrong"))
    except Refused:
        connection.close()
    else:
        raise AssertionError("the user was authenticated")


# Topics and records


def a_topic_with_settings(place: Place) -> None:
    with (
        connect(place) as connection,
        topic(connection, {"retention.ms": "1234567", "segment.bytes": "2000"}),
    ):
        grown = {"name": TOPIC, "count": 4, "assignments": None}
        request: Plain = {"topics": [grown], "timeout_ms": 10_000, "validate_only": False}
        assert connection.ask(ApiKey.CREATE_PARTITIONS, 2, request)["results"][0]["error_code"] == 0
        resource = {"resource_type": 2, "resource_name": TOPIC}
        change = {"name": "retention.ms", "value": "7654321", "config_operation": 0}
        request = {"resources": [{**resource, "configs": [change]}], "validate_only": False}
        answer = connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer["responses"][0]["error_code"] == 0
        connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{**resource, "configuration_keys": None}]})


def segments_and_their_deletion(place: Place) -> None:
    with connect(place) as connection, topic(connection, {"segment.bytes": "1000"}):
        for number in range(20):
            produce(connection, batch(5, start=number * 5))
        part = {"partition_index": 0, "offset": 90}
        request = {"topics": [{"name": TOPIC, "partitions": [part]}], "timeout_ms": 10_000}
        answer = connection.ask(ApiKey.DELETE_RECORDS, 2, request)
        assert answer["topics"][0]["partitions"][0]["low_watermark"] == 90


def an_idempotent_producer(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        request = {"transactional_id": None, "transaction_timeout_ms": 0}
        given = settled(connection, ApiKey.INIT_PRODUCER_ID, 4, request)
        for sequence in (0, 3, 6):
            found = batch(
                3,
                producer_id=given["producer_id"],
                producer_epoch=given["producer_epoch"],
                base_sequence=sequence,
            )
            produce(connection, found)


def a_write_that_waits_for_the_disk(place: Place) -> None:
    with connect(place) as connection, topic(connection, {"flush.messages": "1"}):
        for _ in range(5):
            produce(connection, batch(1))


def a_move_to_another_log_directory(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        produce(connection, batch(5))
        described = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})["results"]
        held = [each["log_dir"] for each in described if TOPIC in [named["name"] for named in each["topics"]]]
        for target in [each["log_dir"] for each in described if each["log_dir"] not in held[:1]] + held[:1]:
            request = {"dirs": [{"path": target, "topics": [{"name": TOPIC, "partitions": [0]}]}]}
            answer = connection.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, request)
            assert answer["results"][0]["partitions"][0]["error_code"] == 0, answer
            wait_until(partial(_is_in, connection, target), PATIENCE_S, f"move of the log to {target}")


def _is_in(connection: Connection, log_dir: str) -> bool:
    (found,) = [
        each
        for each in connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})["results"]
        if each["log_dir"] == log_dir
    ]
    return any(
        partition["partition_index"] == 0 and not partition["is_future_key"]
        for each in found["topics"]
        if each["name"] == TOPIC
        for partition in each["partitions"]
    )


def refused_requests(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        produce(connection, changed(batch(3), CRC_AT, "I", 7, seal=False), 2)
        produce(connection, changed(batch(3), LAST_OFFSET_DELTA_AT, "i", 7), 87)
        produce(connection, batch(3), 3, partition=9)
        again = {"name": TOPIC, "num_partitions": 2, "replication_factor": 1}
        request: Plain = {"topics": [again], "timeout_ms": 10_000}
        assert connection.ask(ApiKey.CREATE_TOPICS, 5, request)["topics"][0]["error_code"] == 36
        request = {"topic_names": [f"{TOPIC}-unknown"], "timeout_ms": 10_000}
        assert connection.ask(ApiKey.DELETE_TOPICS, 5, request)["responses"][0]["error_code"] == 3
        change = {"name": f"{MARK}.setting", "value": "1", "config_operation": 0}
        resource = {"resource_type": 2, "resource_name": TOPIC, "configs": [change]}
        request = {"resources": [resource], "validate_only": False}
        answer = connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer["responses"][0]["error_code"] == 40
        request = fetch_request(f"{TOPIC}-unknown", 0)
        assert connection.ask(ApiKey.FETCH, 11, request)["responses"][0]["partitions"][0]["error_code"] == 3
        request = fetch_request(TOPIC, 99)
        assert connection.ask(ApiKey.FETCH, 11, request)["responses"][0]["partitions"][0]["error_code"] == 1
        request = {"topics": [{"name": f"{MARK}/no-topic"}], "allow_auto_topic_creation": True}
        assert connection.ask(ApiKey.METADATA, 7, request)["topics"][0]["error_code"] == 17


# Fetches


def a_fetch_that_waits(place: Place) -> None:
    with connect(place) as reader, connect(place) as writer, topic(writer):
        request = fetch_request(TOPIC, 0, max_wait_ms=60_000, min_bytes=1)
        reader.begin(ApiKey.FETCH, 11, request)
        produce(writer, batch(3))
        assert reader.finish(ApiKey.FETCH, 11)["responses"][0]["partitions"][0]["high_watermark"] == 3


def a_fetch_that_waits_in_vain(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        request = fetch_request(TOPIC, 0, max_wait_ms=20, min_bytes=1)
        assert connection.ask(ApiKey.FETCH, 11, request)["responses"][0]["partitions"][0]["error_code"] == 0


def a_fetch_that_waits_for_a_deleted_topic(place: Place) -> None:
    with connect(place) as reader, connect(place) as writer:
        with topic(writer):
            reader.begin(ApiKey.FETCH, 11, fetch_request(TOPIC, 0, max_wait_ms=60_000, min_bytes=1))
        assert reader.finish(ApiKey.FETCH, 11)["responses"][0]["partitions"][0]["error_code"] in (3, 6)


def a_waiting_fetch_of_a_client_that_leaves(place: Place) -> None:
    with connect(place) as writer, topic(writer):
        with connect(place) as reader:
            reader.begin(ApiKey.FETCH, 11, fetch_request(TOPIC, 0, max_wait_ms=60_000, min_bytes=1 << 20))
        produce(writer, batch(3))


def a_fetch_session(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        request = fetch_request(TOPIC, 0, session_epoch=0)
        answer = connection.ask(ApiKey.FETCH, 11, request)
        assert answer["session_id"]
        produce(connection, batch(3))
        more: Plain = {"session_id": answer["session_id"], "session_epoch": 1, "topics": []}
        assert connection.ask(ApiKey.FETCH, 11, request | more)["error_code"] == 0
        end: Plain = {"session_id": answer["session_id"], "session_epoch": -1, "topics": []}
        assert connection.ask(ApiKey.FETCH, 11, request | end)["error_code"] == 0


# Groups


def _join(connection: Connection, **more: object) -> Plain:
    settled(connection, ApiKey.FIND_COORDINATOR, 2, {"key": GROUP, "key_type": 0})
    request = join(GROUP, **more)
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        answer = connection.ask(ApiKey.JOIN_GROUP, 5, request)
        request["member_id"] = answer["member_id"] or request["member_id"]
        if answer["error_code"] not in (*_PENDING, 79) or time.monotonic() > deadline_s:
            assert answer["error_code"] == 0, answer
            return answer


def _member(joined: Plain) -> Plain:
    return {"group_id": GROUP, "generation_id": joined["generation_id"], "member_id": joined["member_id"]}


def _sync(connection: Connection, joined: Plain) -> None:
    given = [{"member_id": joined["member_id"], "assignment": MARK.encode() + b"-assignment"}]
    request = _member(joined) | {"assignments": given}
    assert connection.ask(ApiKey.SYNC_GROUP, 3, request)["error_code"] == 0


def _commit(connection: Connection, joined: Plain) -> None:
    part = {"partition_index": 0, "committed_offset": 2, "committed_metadata": f"{MARK}-metadata"}
    listed = [{"name": TOPIC, "partitions": [part]}]
    request = {
        "group_id": GROUP,
        "generation_id_or_member_epoch": joined["generation_id"],
        "member_id": joined["member_id"],
        "topics": listed,
    }
    answer = connection.ask(ApiKey.OFFSET_COMMIT, 7, request)
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer


def _delete_group(connection: Connection, accepted: Sequence[int] = (0,)) -> None:
    request = {"groups_names": [GROUP]}
    settled(connection, ApiKey.DELETE_GROUPS, 1, request, "results", 0, accepted=accepted)


def a_group_whose_member_leaves(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        joined = _join(connection, session_timeout_ms=_SHORT_SESSION_MS * 5)
        _sync(connection, joined)
        _commit(connection, joined)
        assert connection.ask(ApiKey.HEARTBEAT, 3, _member(joined))["error_code"] == 0
        request = {"group_id": GROUP, "members": [{"member_id": joined["member_id"]}]}
        assert connection.ask(ApiKey.LEAVE_GROUP, 3, request)["error_code"] == 0
        _delete_group(connection)


def a_group_whose_static_member_expires(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        more = {"session_timeout_ms": _SHORT_SESSION_MS, "group_instance_id": f"{MARK}-instance"}
        joined = _join(connection, **more)
        _sync(connection, joined)
        _commit(connection, joined)
        _delete_group(connection)


def a_member_that_leaves_while_it_waits_to_join(place: Place) -> None:
    with connect(place) as first:
        joined = _join(first, session_timeout_ms=_SHORT_SESSION_MS * 5)
        with connect(place) as second:
            second.begin(ApiKey.JOIN_GROUP, 3, join(GROUP, session_timeout_ms=_SHORT_SESSION_MS))
            deadline_s = time.monotonic() + PATIENCE_S
            while first.ask(ApiKey.HEARTBEAT, 3, _member(joined))["error_code"] != 27:
                assert time.monotonic() < deadline_s
        request = {"group_id": GROUP, "members": [{"member_id": joined["member_id"]}]}
        assert first.ask(ApiKey.LEAVE_GROUP, 3, request)["error_code"] == 0
        # The group has no offsets: the check for expired offsets deletes it when its last member has expired.
        _delete_group(first, accepted=(0, 69))


# Transactions


def _begin(connection: Connection, timeout_ms: int = 60_000) -> Plain:
    settled(connection, ApiKey.FIND_COORDINATOR, 2, {"key": TRANSACTIONAL_ID, "key_type": 1})
    request = {"transactional_id": TRANSACTIONAL_ID, "transaction_timeout_ms": timeout_ms}
    given = settled(connection, ApiKey.INIT_PRODUCER_ID, 4, request)
    return {name: given[name] for name in ("producer_id", "producer_epoch")}


def _add(connection: Connection, producer: Plain) -> None:
    request = {
        "v3_and_below_transactional_id": TRANSACTIONAL_ID,
        **{f"v3_and_below_{name}": value for name, value in producer.items()},
        "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}],
    }
    path = ("results_by_topic_v3_and_below", 0, "results_by_partition", 0)
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        answer = connection.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        code = answer[path[0]][path[1]][path[2]][path[3]]["partition_error_code"]
        if code not in _PENDING or time.monotonic() > deadline_s:
            assert code == 0
            return


def _write(connection: Connection, producer: Plain) -> None:
    found = batch(3, transactional=True, base_sequence=0, **producer)
    produce(connection, found, transactional_id=TRANSACTIONAL_ID)


def a_transaction_with_offsets(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        producer = _begin(connection)
        _add(connection, producer)
        _write(connection, producer)
        named = producer | {"transactional_id": TRANSACTIONAL_ID}
        settled(connection, ApiKey.ADD_OFFSETS_TO_TXN, 3, named | {"group_id": GROUP})
        part = {"partition_index": 0, "committed_offset": 2, "committed_metadata": f"{MARK}-metadata"}
        request = named | {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": [part]}]}
        path = ("topics", 0, "partitions", 0)
        settled(connection, ApiKey.TXN_OFFSET_COMMIT, 3, request, *path)
        settled(connection, ApiKey.END_TXN, 3, named | {"committed": True})
        _begin(connection)  # waits for the markers
        _delete_group(connection)


def a_transaction_that_times_out(place: Place) -> None:
    with connect(place) as connection, topic(connection):
        producer = _begin(connection, timeout_ms=100)
        _add(connection, producer)
        _write(connection, producer)
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            request = fetch_request(TOPIC, 0, isolation_level=1)
            (part,) = connection.ask(ApiKey.FETCH, 11, request)["responses"][0]["partitions"]
            if part["last_stable_offset"] == 4:
                break
            assert time.monotonic() < deadline_s


# Quotas


def a_quota(place: Place) -> None:
    # This client sends no records, because the broker keeps the rates of some thousand clients.
    who = [{"entity_type": "client-id", "entity_name": f"{CLIENT}-with-quota"}]
    with connect(place) as connection:
        for removes in (False, True):
            operation = {"key": "producer_byte_rate", "value": 1e9, "remove": removes}
            request = {"entries": [{"entity": who, "ops": [operation]}], "validate_only": False}
            assert connection.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)["entries"][0]["error_code"] == 0


# All actions


def a_round_of_the_campaign(place: Place) -> None:
    churn_once(place.plain, MARK)


ACTS: list[Act] = [
    a_connection,
    a_connection_in_the_middle_of_a_request,
    a_connection_that_sends_rubbish,
    a_tls_connection,
    a_failed_tls_handshake,
    a_login_of_a_user_who_is_created_and_deleted,
    a_refused_login,
    a_delegation_token,
    an_acl,
    a_topic_with_settings,
    segments_and_their_deletion,
    an_idempotent_producer,
    a_write_that_waits_for_the_disk,
    a_move_to_another_log_directory,
    refused_requests,
    a_fetch_that_waits,
    a_fetch_that_waits_in_vain,
    a_fetch_that_waits_for_a_deleted_topic,
    a_waiting_fetch_of_a_client_that_leaves,
    a_fetch_session,
    a_group_whose_member_leaves,
    a_group_whose_static_member_expires,
    a_member_that_leaves_while_it_waits_to_join,
    a_transaction_with_offsets,
    a_transaction_that_times_out,
    a_quota,
    a_round_of_the_campaign,
]
