"""Controller election: the winner creates /controller and gets a new controller epoch."""

from contextlib import suppress

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore

FIRST_CONTROLLER_EPOCH = 0
"""Value of /controller_epoch before the first election."""


class ControllerEpoch:
    """The epoch of a controller's term, and the version of /controller_epoch."""

    def __init__(self, controller_epoch: int, epoch_znode_version: int) -> None:
        self.controller_epoch = controller_epoch
        self.epoch_znode_version = epoch_znode_version


async def run_for_controller(
    store: MetadataStore, broker_id: int, now_ms: int, malformed: MalformedNodes
) -> ControllerEpoch | None:
    """Try to become the controller, in one transaction that creates /controller and increments
    /controller_epoch.

    Returns None if another broker is the controller. Raises ConnectionLost if the response is lost.
    """
    try:
        before = await read_controller_epoch(store, malformed)
    except stores.NoNode:
        with suppress(stores.NodeExists):
            await store.create(
                znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(FIRST_CONTROLLER_EPOCH)
            )
        before = await read_controller_epoch(store, malformed)
    payload = znodes.encode_controller(znodes.ControllerInfo(broker_id, now_ms))
    epoch = before.controller_epoch + 1
    try:
        results = await store.multi(
            [
                stores.Create(znodes.CONTROLLER, payload, ephemeral=True),
                stores.SetData(
                    znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch), before.epoch_znode_version
                ),
            ]
        )
    except stores.TransactionFailed:
        return None
    written = results[1]
    assert isinstance(written, stores.Stat)
    return ControllerEpoch(epoch, written.version)


async def read_controller_epoch(store: MetadataStore, malformed: MalformedNodes) -> ControllerEpoch:
    """Read /controller_epoch. Raises NoNode if it does not exist.

    If the node is malformed, its version is used as the epoch: the epoch is 0 at version 0, and each election
    increments both.
    """
    data, stat = await store.get(znodes.CONTROLLER_EPOCH)
    try:
        epoch = znodes.decode_controller_epoch(data)
    except MalformedNode as error:
        malformed.report(error, stat.version, f"the node's version, {stat.version}, is used as the epoch")
        epoch = stat.version
    return ControllerEpoch(epoch, stat.version)
