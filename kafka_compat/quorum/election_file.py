"""The file quorum-state, which contains a node's epoch and vote, in Kafka's JSON format.

With static voters (controller.quorum.voters), the file has version 0 and lists their IDs. Otherwise, it has
version 1 with the directory ID of the voted candidate (KIP-853). Both versions are read.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.coordination.raft.values import (
    NO_NODE,
    UNKNOWN_DIRECTORY,
    ElectionState,
    ReplicaKey,
)
from kafka_compat.storage.directories.checkpoints import decode_topic_id, encode_topic_id
from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.filesystem import RealFilesystem

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem

QUORUM_STATE: Final = "quorum-state"
_VERSIONS: Final = (0, 1)


class ElectionFile:
    """The quorum-state file in a directory. `voters` contains the IDs of static voters, or is None."""

    def __init__(
        self, directory: str, voters: Collection[int] | None, filesystem: Filesystem | None = None
    ) -> None:
        self.path = f"{directory}/{QUORUM_STATE}"
        self._voters = voters
        self._filesystem = filesystem or RealFilesystem()

    def load(self) -> ElectionState:
        """Return the saved state, or the initial state if the file is missing.

        Raises CorruptFile if the file is damaged, because a node that forgot its vote could vote twice.
        """
        try:
            content = self._filesystem.read_file(self.path)
        except FileNotFoundError:
            return ElectionState()
        try:
            return decode_election(content)
        except CorruptFile as error:
            raise CorruptFile(
                f"{self.path} is damaged ({error}): restore it from a backup, or empty the metadata "
                "directory so that this node fetches everything from the other voters"
            ) from None

    def save(self, state: ElectionState) -> None:
        """Write the state atomically and durably. Raises OSError."""
        self._filesystem.write_file_atomically(self.path, encode_election(state, self._voters))


def encode_election(state: ElectionState, voters: Collection[int] | None) -> bytes:
    """Encode a state, with static voters in version 0 and without in version 1."""
    voted = state.voted
    content: dict[str, Any]
    if voters is not None:
        content = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.node_id if voted is not None else NO_NODE,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in sorted(voters)],
            "data_version": 0,
        }
    else:
        content = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.node_id if voted is not None else NO_NODE,
            "votedDirectoryId": encode_topic_id(
                voted.directory_id if voted is not None else UNKNOWN_DIRECTORY
            ),
            "data_version": 1,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_election(content: bytes) -> ElectionState:
    """Decode a quorum-state file of version 0 or 1. Raises CorruptFile."""
    try:
        fields = json.loads(content)
        version = fields["data_version"]
        if version not in _VERSIONS:
            raise CorruptFile(f"its data_version is {version}, but only 0 and 1 are supported")
        epoch, leader_id, voted_id = (int(fields[name]) for name in ("leaderEpoch", "leaderId", "votedId"))
        directory = decode_topic_id(fields["votedDirectoryId"]) if version == 1 else UNKNOWN_DIRECTORY
    except (ValueError, TypeError, LookupError) as error:
        raise CorruptFile(f"not the JSON of a quorum state: {error!r}") from None
    voted = ReplicaKey(voted_id, directory) if voted_id != NO_NODE else None
    return ElectionState(max(epoch, 0), leader_id, voted)
