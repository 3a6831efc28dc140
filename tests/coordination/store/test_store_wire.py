"""The protocol between the store server and its clients: messages round-trip, and invalid messages are
rejected.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store import store_wire
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, Operation
from kafka_compat.coordination.store.store_wire import (
    BadFrame,
    Splitter,
    decode_answer,
    decode_request,
    encode_frame,
)

NAMES = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=5
)
PATHS = st.lists(NAMES, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.none() | st.binary(max_size=20)
NUMBERS = st.integers(-1, 2**63)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(stores.Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(stores.SetData, PATHS, DATA, NUMBERS),
    st.builds(stores.Delete, PATHS, NUMBERS),
    st.builds(stores.Check, PATHS, NUMBERS),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
KINDS = ("open", "get", "exists", "children", "multi", "close", "alive", "done", "failed", "event", "expired")
NEARLY_MESSAGES = st.builds(
    lambda kind, rest: [kind, *rest],
    st.sampled_from(KINDS),
    st.lists(
        ANYTHING | st.lists(st.lists(st.sampled_from(["create", "set", "/a", -1, True, None]))), max_size=5
    ),
)


def over(message: Any) -> list[Any]:
    """Encode and decode a message, as sending it does."""
    [come] = Splitter().feed(encode_frame(message))
    return come


@given(st.lists(OPERATIONS, max_size=5))
def test_encoding_and_decoding_preserve_a_transaction(operations: list[Operation]) -> None:
    message = ["multi", 3, 4, store_wire.encode_operations(operations)]
    request = decode_request(over(message))
    assert isinstance(request, store_wire.Multi)
    assert (request.request_id, request.session_id, request.operations) == (3, 4, operations)
    assert list(map(type, request.operations)) == list(map(type, operations))


@given(DATA, st.tuples(*[NUMBERS] * 8))
def test_encoding_and_decoding_preserve_a_node(data: bytes | None, numbers: tuple[int, ...]) -> None:
    stat = stores.Stat(*numbers)
    message = over(["done", 1, store_wire.encode_node(data, stat)])
    answer = decode_answer(message)
    assert isinstance(answer, store_wire.Done)
    assert store_wire.decode_node(answer.result) == (data, stat)


@given(PATHS)
def test_errors_keep_their_names_and_reasons(path: str) -> None:
    failed = stores.TransactionFailed(2, stores.TransactionFailed(1, stores.NoNode(path)))
    answer = decode_answer(over(["failed", 1, store_wire.encode_error(failed)]))
    assert isinstance(answer, store_wire.Failed)
    assert isinstance(answer.error, stores.TransactionFailed)
    inner = answer.error.cause
    assert isinstance(inner, stores.TransactionFailed)
    assert (answer.error.index, inner.index, type(inner.cause), str(inner.cause)) == (
        2,
        1,
        stores.NoNode,
        path,
    )
    assert str(answer.error) == str(failed)


def test_an_error_specific_to_one_store_is_reported_as_a_general_store_error() -> None:
    class Peculiar(MetadataStoreError):
        pass

    answer = decode_answer(over(["failed", 1, store_wire.encode_error(Peculiar("the disk is gone"))]))
    assert isinstance(answer, store_wire.Failed)
    assert (type(answer.error), str(answer.error)) == (MetadataStoreError, "the disk is gone")


@given(st.lists(st.lists(ANYTHING, min_size=1, max_size=4), max_size=6), st.data())
def test_messages_are_decoded_correctly_however_the_stream_is_split(
    messages: list[list[Any]], data: st.DataObject
) -> None:
    stream = b"".join(map(encode_frame, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    splitter = Splitter()
    found: list[list[Any]] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert found == messages


@given(st.binary(max_size=60))
def test_invalid_bytes_are_rejected_or_treated_as_incomplete(noise: bytes) -> None:
    try:
        for message in Splitter().feed(noise):
            assert isinstance(message, list)
    except BadFrame:
        pass


@given(NEARLY_MESSAGES | st.lists(ANYTHING, min_size=1))
def test_all_invalid_messages_are_rejected_with_the_same_error(message: list[Any]) -> None:
    for decode in (decode_request, decode_answer):
        try:
            decode(over(message))
        except BadFrame:
            continue


def framed(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        struct.pack(">I", store_wire.FRAME_BYTES_MAX + 1),
        framed(b""),
        framed(b"{}"),
        framed(b"[]"),
        framed(b'["alive"'),
        framed(b'["\xff"]'),
        framed(b"[" * 100_000),
        framed(b"[" + b"1" * 10_000 + b"]"),
    ],
)
def test_invalid_frames_are_rejected(data: bytes) -> None:
    with pytest.raises(BadFrame):
        list(Splitter().feed(data))


@pytest.mark.parametrize(
    "message",
    [
        ["open"],
        ["open", "1"],
        ["get", 1, 2, "a", None],
        ["get", 1, 2, "/a/", None],
        ["get", 1, 2, "/a", "watch"],
        ["watch", 1, 2, "/a", None],
        ["multi", 1, 2, [["create", "/a", "\u0100", False, False]]],
        ["multi", 1, 2, [["create", "/a\0", None, False, False]]],
        ["multi", 1, 2, [["create", "/a", None, False]]],
        ["multi", 1, 2, [["delete", "/a", None]]],
        ["multi", 1, 2, ["create"]],
        ["alive", 1],
    ],
)
def test_an_invalid_request_is_rejected(message: list[Any]) -> None:
    with pytest.raises(BadFrame):
        decode_request(message)


def test_messages_before_invalid_bytes_are_delivered() -> None:
    heard = []
    with pytest.raises(BadFrame):
        for message in Splitter().feed(encode_frame(["alive"]) + b"\xff" * 8):
            heard.append(message)  # noqa: PERF402 - what came before the error is looked at
    assert heard == [["alive"]]


def test_messages_that_are_too_long_are_not_sent() -> None:
    with pytest.raises(MetadataStoreError, match="the maximum is"):
        encode_frame(["multi", "x" * store_wire.FRAME_BYTES_MAX])
    assert json.loads(encode_frame(["alive"])[4:]) == ["alive"]
