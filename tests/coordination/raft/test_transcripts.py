"""What a quorum does, compared with the transcripts in tests/transcripts/raft.

The lines above the dashes are what happens to the quorum; the lines below are what its nodes do. After an
intended change, set KAFKA_COMPAT_REWRITE_TRANSCRIPTS=1 to rewrite them, and review them with `git diff`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.coordination.raft import effects, events
from tests.coordination.raft.raft_world import Node, World
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("raft"), ids=lambda path: path.stem)
def test_a_quorum_reacts_to_faults_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)


class Player:
    def __init__(self) -> None:
        self.world = World(1, 3)
        self.lines: list[str] = []

    def play(self, commands: str) -> str:
        self.lines.clear()
        for line in commands.splitlines():
            if not line.startswith("#"):
                name, *words = line.split()
                getattr(self, "do_" + name.replace("-", "_"))(*words)
        return "\n".join(self.lines)

    def do_voters(self, count: str, seed: str) -> None:
        self.world = World(int(seed), int(count))
        self.world.trace = self._trace

    def do_start(self, *nodes: str) -> None:
        self.world.start(*map(int, nodes))

    def do_kill(self, *nodes: str) -> None:
        self.world.kill(*map(int, nodes))

    def do_run(self, duration_ms: str) -> None:
        self.world.run(int(duration_ms))

    def do_until_leader(self) -> None:
        assert self.world.run(10_000, lambda: self.world.leader() is not None)

    def do_partition(self, *words: str) -> None:
        self.world.partition(*(map(int, group.split(",")) for group in words))

    def do_heal(self) -> None:
        self.world.heal()

    def do_propose(self, node: str, count: str) -> None:
        self.world.propose(self.world.nodes[int(node)], int(count))

    def do_snapshot(self, node: str) -> None:
        self.world.take_snapshot(self.world.nodes[int(node)], move_start=True)

    def do_wipe(self, node: str) -> None:
        self.world.nodes[int(node)].disk.wipe()

    def do_resign(self, node: str) -> None:
        self.world.send(int(node), events.Resigning())

    def _trace(self, node: Node, effect: effects.Effect) -> None:
        text = _told(effect)
        if text is not None:
            self.lines.append(f"{self.world.now_ms:5} ms  {node.key.node_id}: {text}")


def _told(effect: effects.Effect) -> str | None:
    match effect:
        case effects.RoleChanged():
            leader = "nobody" if effect.leader_id < 0 else effect.leader_id
            return f"{effect.role.value} in epoch {effect.epoch}, leader {leader}"
        case effects.AppendLeaderChange():
            return f"appends LeaderChange at {effect.base_offset}"
        case effects.AppendProposal():
            return f"appends a proposal at {effect.base_offset}"
        case effects.AppendFetched():
            return f"appends {effect.batches[0].base_offset}-{effect.batches[-1].last_offset}"
        case effects.Truncate():
            return f"truncates to {effect.offset}"
        case effects.InstallSnapshot():
            return f"installs snapshot {effect.snapshot.offset}-{effect.snapshot.epoch}"
        case effects.Committed():
            return f"committed below {effect.high_watermark}"
        case effects.SendEndQuorumEpoch():
            return f"tells {effect.node_id} that successors are {[key.node_id for key in effect.successors]}"
        case _:
            return None
