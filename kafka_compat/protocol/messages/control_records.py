"""Values of the control records that end a transaction in a log."""

from kafka_compat.protocol.schema import Int32, data


@data(versions="0")
class EndTxnMarker:
    """Commit and abort markers alike; which of the two, their key tells."""

    coordinator_epoch: Int32 = 0
