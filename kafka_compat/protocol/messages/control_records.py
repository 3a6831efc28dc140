"""Values of the control records that end a transaction in a log."""

from kafka_compat.protocol.schema import Int32, data


@data(versions="0")
class EndTxnMarker:
    coordinator_epoch: Int32 = 0
