"""Questions about sets of voters.

Rules:
- With static voters, only IDs count. With voters from the log, a voter is an ID and a directory ID, so that
  a node with an empty disk is not the voter that it was (KIP-853).
- A majority is more than half of the voters.
"""

from collections.abc import Iterable, Mapping

from kafka_compat.coordination.raft.values import UNKNOWN_DIRECTORY, ReplicaKey, Voter, VoterSet


def voter_set(voters: Iterable[Voter]) -> VoterSet:
    """Return a set of voters, in the order of their IDs."""
    return {voter.key.node_id: voter for voter in sorted(voters, key=lambda voter: voter.key.node_id)}


def majority(voters: VoterSet) -> int:
    """Return the number of voters that decide."""
    return len(voters) // 2 + 1


def is_same(first: ReplicaKey, second: ReplicaKey) -> bool:
    """Return whether two keys may be the same replica: an unknown directory ID equals every other."""
    return first.node_id == second.node_id and (
        first.directory_id == second.directory_id
        or UNKNOWN_DIRECTORY in (first.directory_id, second.directory_id)
    )


def is_in(key: ReplicaKey, voters: VoterSet, *, ignore_directory: bool) -> bool:
    voter = voters.get(key.node_id)
    return voter is not None and (ignore_directory or voter.key == key)


def highest_of_majority(offsets: Mapping[int, int], voters: VoterSet) -> int:
    """Return the highest offset that a majority of the voters has reached; missing ones have reached none."""
    reached = sorted((offsets.get(node_id, -1) for node_id in voters), reverse=True)
    return reached[majority(voters) - 1] if reached else -1
