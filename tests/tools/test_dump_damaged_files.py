"""`kafka-dump-log` with damaged files: each error is one line in Kafka's form."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.tools import dump_log
from kafka_compat.tools.failure import Failure

STEM = f"{2:020d}"
MAGIC_AT, ATTRIBUTES_AT = 16, 22


def _batch(base_offset: int = 2, *, compression: CompressionType = CompressionType.NONE) -> bytearray:
    records = [
        Record(key=b"k", value=b"v" * 20, timestamp=1000 + i, headers=(("name", b"x"),)) for i in range(3)
    ]
    batch = bytearray(build_batch(records, compression=compression))
    batch[:8] = base_offset.to_bytes(8, "big")
    return batch


def _fails(*arguments: str) -> str:
    """Return the error of the command."""
    with pytest.raises(Failure) as failed:
        dump_log.run(list(arguments))
    return str(failed.value)


@pytest.mark.parametrize("position", [-(2**31), -1, 400])
def test_an_index_entry_outside_the_log_is_an_error(tmp_path: Path, position: int) -> None:
    (tmp_path / f"{STEM}.log").write_bytes(_batch())
    (tmp_path / f"{STEM}.index").write_bytes(struct.pack(">ii", 1, position))
    (tmp_path / f"{STEM}.timeindex").write_bytes(struct.pack(">qi", 1002, 2))
    expected = f"java.lang.IllegalArgumentException: Position {position} in {tmp_path}/{STEM}"
    for suffix in (".index", ".timeindex"):
        assert _fails("--files", f"{tmp_path}/{STEM}{suffix}").startswith(expected + suffix)


def test_a_batch_of_an_unknown_format_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by Kafka's command."""
    batch = _batch()
    batch[MAGIC_AT] = 9
    (tmp_path / f"{STEM}.log").write_bytes(batch)
    assert dump_log.run(["--files", f"{tmp_path}/{STEM}.log"]) == 0
    printed = capsys.readouterr().out
    assert "baseOffset: 2 lastOffset: 4" in printed
    assert "magic: 9" in printed
    assert "isvalid: true" in printed


def test_an_unknown_compression_type_is_named(tmp_path: Path) -> None:
    batch = _batch()
    batch[ATTRIBUTES_AT] |= 7
    (tmp_path / f"{STEM}.log").write_bytes(batch)
    assert (
        _fails("--files", f"{tmp_path}/{STEM}.log")
        == "java.lang.IllegalArgumentException: Unknown compression type id: 7"
    )


def test_a_batch_without_records_has_no_timestamp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batch = _batch()[:61]
    batch[8:12] = (61 - 12).to_bytes(4, "big")
    batch[57:61] = bytes(4)
    (tmp_path / f"{STEM}.log").write_bytes(batch)
    (tmp_path / f"{STEM}.timeindex").write_bytes(struct.pack(">qi", 1002, 2))
    assert dump_log.run(["--files", f"{tmp_path}/{STEM}.timeindex"]) == 0
    assert "Index timestamp: 1002, log timestamp: -1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["abc.log", "x-y.checkpoint", f"{10**20 - 1}.log"])
def test_a_name_without_an_offset_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(_batch())
    stem = name.partition(".")[0].partition("-")[0]
    assert (
        _fails("--files", f"{tmp_path}/{name}")
        == f'java.lang.NumberFormatException: For input string: "{stem}"'
    )


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.GZIP])
def test_damaged_records_end_with_one_error(tmp_path: Path, compression: CompressionType) -> None:
    damage = random.Random(9)
    whole = bytes(_batch(2, compression=compression) + _batch(5, compression=compression))
    path = tmp_path / f"{STEM}.log"
    options: tuple[list[str], ...] = (
        [],
        ["--print-data-log"],
        ["--offsets-decoder"],
        ["--transaction-log-decoder"],
        ["--share-group-state-decoder"],
    )
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(damage.choice((1, 2, 8))):
            content[damage.randrange(8, len(content))] = damage.choice((0, 0xFF, damage.randrange(256)))
        path.write_bytes(content)
        (tmp_path / f"{STEM}.timeindex").write_bytes(struct.pack(">qi", 1002, damage.randrange(4)))
        for arguments in (
            ["--files", str(path), *damage.choice(options)],
            ["--files", f"{path.with_suffix('')}.timeindex"],
        ):
            try:
                dump_log.run(arguments)
            except Failure as failure:
                assert "NumberFormatException" not in failure.kind
