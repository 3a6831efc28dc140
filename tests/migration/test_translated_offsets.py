"""kafka-compat migrate offsets: the place in a mirrored partition for an offset of the original."""

from __future__ import annotations

import random

import pytest

from kafka_compat.migration.translated_offsets import Mirrored, Translated, origin_in, translated


def _translate(records: list[Mirrored], original: int, start: int, end: int) -> Translated:
    probes = translated(original, start, end)
    try:
        wanted = next(probes)
        while True:
            wanted = probes.send(next((each for each in records if each.offset >= wanted), None))
    except StopIteration as stop:
        result: Translated = stop.value
        return result


@pytest.mark.parametrize("seed", range(200))
def test_a_group_continues_with_the_first_record_that_it_has_not_processed(seed: int) -> None:
    chance = random.Random(seed)
    originals = sorted(chance.sample(range(100), chance.randint(0, 30)))
    offset, records = chance.randint(0, 5), []
    for original in originals:
        offset += chance.choice((0, 0, 1, 7))  # records of other producers, markers, compaction
        records.append(Mirrored(offset, original))
        offset += 1
    end = offset + chance.choice((0, 1, 4))
    committed = chance.randint(0, 110)
    found = _translate(records, committed, 0, end)
    read = [each.original for each in records if each.offset >= found.offset]
    assert read == [each for each in originals if each >= committed]
    before = [each for each in originals if each < committed]
    assert found.last_original == (before[-1] if before else None)
    assert found.next_original == (read[0] if read else None)


def test_the_origin_is_that_of_the_last_mirror_and_of_this_partition() -> None:
    headers = [("kafka-compat-origin", b"t/0/5"), ("other", b"t/0/6"), ("kafka-compat-origin", b"t/0/17")]
    assert origin_in(headers, "t", 0) == 17
    assert origin_in(headers, "t", 1) is None
    assert origin_in([("kafka-compat-origin", b"?")], "t", 0) is None
    assert origin_in([], "t", 0) is None
