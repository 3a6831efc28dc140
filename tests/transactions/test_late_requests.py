"""EndTxn requests and markers that arrive late, after the producer's next transaction has begun (KIP-890).

A proxy in front of each of three brokers delays them, and Java 4.1.0 and the coordinator retry and continue.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.cluster.embedded import EmbeddedCluster
from tests.support import campaign, java
from tests.support.ports import free_port
from tests.transactions.delaying_proxy import LateProxy
from tests.transactions.programs import await_markers, read_all

PROGRAM = Path(__file__).parent / "java" / "Pausing.java"
PARTITIONS = 3
PATIENCE_S = 60

pytestmark = pytest.mark.timeout(900)


@asynccontextmanager
async def cluster_behind_proxies(
    directory: Path, version: int, held: Counter[ApiKey]
) -> AsyncIterator[list[LateProxy]]:
    """Every fifth EndTxn and WriteTxnMarkers request is delayed."""
    counts: Counter[ApiKey] = Counter()

    def holds(key: ApiKey) -> bool:
        if key not in (ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS):
            return False
        counts[key] += 1
        late = counts[key] % 5 == 1
        held[key] += late
        return late

    ports = {number: free_port() for number in (1, 2, 3)}
    proxies = {number: LateProxy(port, holds) for number, port in ports.items()}
    for proxy in proxies.values():
        await proxy.start()
    cluster = EmbeddedCluster(
        directory,
        settings={"kafka.compat.transaction.version": str(version), "request.timeout.ms": "500"},
        ports=ports,
        advertised={number: proxy.port for number, proxy in proxies.items()},
    )
    try:
        await cluster.start()
        assert await cluster.create_topic("topic", PARTITIONS) == ErrorCode.NONE
        yield list(proxies.values())
    finally:
        for proxy in proxies.values():
            await proxy.close()
        await cluster.stop()


async def run(address: str, transactions: int, proxies: list[LateProxy]) -> tuple[list[str], int]:
    """Return the program's output lines, and the number of delayed requests."""
    process = await asyncio.create_subprocess_exec(
        *java.command(str(PROGRAM), address, "topic", str(PARTITIONS), str(transactions), version="4.1.0"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    said: list[str] = []
    late = 0
    try:
        while line := (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode().strip():
            said.append(line)
            if line.startswith("open"):
                for proxy in proxies:
                    late += await proxy.release()
                process.stdin.write(b"\n")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    return said, late


async def test_late_requests_have_no_effect_under_transaction_version_2(tmp_path: Path) -> None:
    transactions = campaign.rounds(9, 500)
    held: Counter[ApiKey] = Counter()
    async with cluster_behind_proxies(tmp_path, 2, held) as proxies:
        address = ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)
        said, late = await run(address, transactions, proxies)
        ends = [line for line in said if not line.startswith("open")]
        assert ends == [f"{'abort' if n % 3 == 2 else 'commit'} {n}" for n in range(transactions)]
        kept = [f"{n}-{part}" for n in range(transactions) if n % 3 != 2 for part in ("before", "after")]
        await asyncio.to_thread(await_markers, address, "topic", PARTITIONS)
        seen = await asyncio.to_thread(read_all, address, "topic", partitions=PARTITIONS)
        everything = await asyncio.to_thread(read_all, address, "topic", "read_uncommitted", PARTITIONS)
    assert Counter(seen) == Counter(PARTITIONS * kept)
    assert len(everything) == 2 * PARTITIONS * transactions
    assert late >= transactions // 3
    assert held[ApiKey.END_TXN] >= transactions // 6
    assert held[ApiKey.WRITE_TXN_MARKERS] >= transactions // 6
    print(f"{transactions} transactions, late: {dict(held)}")


@pytest.mark.skipif(not campaign.enabled(), reason="normal runs use test_version_2")
async def test_without_transaction_version_2_late_requests_affect_the_next_transaction(
    tmp_path: Path,
) -> None:
    """With transaction.version 0, delayed requests affect later transactions. This shows that the test above
    can fail.
    """
    async with cluster_behind_proxies(tmp_path, 0, Counter()) as proxies:
        address = ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)
        with pytest.raises((AssertionError, TimeoutError)):
            said, _ = await run(address, 8, proxies)
            assert [line for line in said if line.endswith("7")] == ["open 7", "commit 7"]
            kept = [f"{n}-{part}" for n in range(8) if n % 3 != 2 for part in ("before", "after")]
            seen = await asyncio.to_thread(read_all, address, "topic", partitions=PARTITIONS)
            assert Counter(seen) == Counter(PARTITIONS * kept)
