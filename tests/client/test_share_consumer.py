"""Acknowledgements of a member of a share group."""

from __future__ import annotations

import pytest

from kafka_compat.client.share_consumer import Acknowledgement, batches_of, share_settings

ACCEPT, RELEASE, GAP = Acknowledgement.ACCEPT, Acknowledgement.RELEASE, Acknowledgement.GAP


def test_consecutive_offsets_with_the_same_acknowledgement_have_one_type() -> None:
    assert batches_of({2: ACCEPT, 1: ACCEPT, 3: ACCEPT}) == [(1, 3, [1])]


def test_consecutive_offsets_with_different_acknowledgements_have_one_type_for_each() -> None:
    assert batches_of({1: ACCEPT, 2: RELEASE, 3: GAP, 4: ACCEPT}) == [(1, 4, [1, 2, 0, 1])]


def test_other_offsets_are_in_batches_of_their_own() -> None:
    assert batches_of({1: ACCEPT, 3: ACCEPT, 4: RELEASE}) == [(1, 1, [1]), (3, 4, [1, 2])]
    assert batches_of({}) == []


def test_invalid_settings_are_named() -> None:
    assert share_settings({"group.id": "g", "max.poll.records": "7"}).records_max == 7
    with pytest.raises(ValueError, match=r"max\.poll\.records"):
        share_settings({"group.id": "g", "max.poll.records": "many"})
