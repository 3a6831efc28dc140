"""Web console page for transactional IDs and open transactions."""

from typing import Any, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.page.listing import listed
from kafka_compat.page.visit import Data, Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.authorizer import Operation, ResourceType

_COLUMNS: Final = {"name": "name", "state": "state", "producer": "producer_id", "broker": "coordinator"}
_VERSION: Final = 0


async def see(visit: Visit) -> Data:
    """Return the transactional IDs, as reported by their coordinators."""
    rows: list[dict[str, Any]] = []
    missing = []
    for broker_id in sorted(visit.cluster.metadata.brokers):
        if not _has_coordinator(visit, broker_id):
            continue
        try:
            answer = await visit.ask(ApiKey.LIST_TRANSACTIONS, _VERSION, broker_id)
        except (BadCall, MalformedRequest):
            missing.append(f"broker {broker_id} did not report the transactions that it coordinates")
            continue
        rows += [
            {
                "name": one.transactional_id,
                "state": one.transaction_state,
                "producer_id": one.producer_id,
                "coordinator": broker_id,
            }
            for one in answer.transaction_states
            if visit.rights.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one.transactional_id)
        ]
    found = listed(rows, visit.query, _COLUMNS, "name")
    await _describe(visit, found["rows"])
    return {"transactions": found, "missing": missing}


def _has_coordinator(visit: Visit, broker_id: int) -> bool:
    """Return whether the broker may coordinate transactions, without creating its coordinator."""
    services = next((one for one in visit.cluster.services if one.broker_id == broker_id), None)
    return services is None or services.coordinators.transactions.made is not None


async def _describe(visit: Visit, rows: list[dict[str, Any]]) -> None:
    """Add the duration and the partitions of transactions to the displayed rows."""
    now_ms = visit.cluster.now_ms()
    for broker_id in {row["coordinator"] for row in rows}:
        theirs = {row["name"]: row for row in rows if row["coordinator"] == broker_id}
        for row in theirs.values():
            row.update(epoch=None, timeout_ms=None, seconds=None, partitions=[])
        try:
            answer = await visit.ask(
                ApiKey.DESCRIBE_TRANSACTIONS, _VERSION, broker_id, transactional_ids=list(theirs)
            )
        except (BadCall, MalformedRequest):
            continue
        for one in answer.transaction_states:
            if one.error_code:
                continue
            begun_ms = one.transaction_start_time_ms
            theirs[one.transactional_id].update(
                epoch=one.producer_epoch,
                timeout_ms=one.transaction_timeout_ms,
                seconds=max(0, now_ms - begun_ms) / 1000 if begun_ms >= 0 and one.topics else None,
                partitions=[
                    {"topic": topic.topic, "partitions": list(topic.partitions)}
                    for topic in one.topics
                    if visit.rights.may_see_topic(topic.topic)
                ],
            )
