"""Settings that let state expire within a test."""

from __future__ import annotations

TIMES = 3

EXPIRIES_OF_A_TEST = {
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "producer.id.expiration.ms": "1500",
    "producer.id.expiration.check.interval.ms": "100",
    "log.segment.delete.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
