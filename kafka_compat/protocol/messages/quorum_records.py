"""Values of the control records in the metadata log and its snapshots (KIP-595, KIP-630, KIP-853).

The key of a control record is two int16: the version 0, and the type. The value begins with its own version,
which is the message's version and its first field.
"""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.messages.update_raft_voter import KRaftVersionFeature
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class ChangeVoter:
    """A voter: its ID and, since version 1, its metadata directory."""

    voter_id: s.Int32 = 0
    voter_directory_id: s.Uuid = s.field("1+", default=ZERO_UUID)


@s.data(versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """The first record of each epoch (control type 2): its leader, all voters, and those that elected it."""

    version: s.Int16 = 0
    leader_id: s.Int32 = 0
    voters: list[ChangeVoter] = []
    granting_voters: list[ChangeVoter] = []


@s.data(versions="0", flexible="0+")
class SnapshotHeaderRecord:
    """The first record of a snapshot (control type 3), with the timestamp of the last record that the
    snapshot contains, in ms since 1970.
    """

    version: s.Int16 = 0
    last_contained_log_timestamp: s.Int64 = 0


@s.data(versions="0", flexible="0+")
class SnapshotFooterRecord:
    """The last record of a complete snapshot (control type 4)."""

    version: s.Int16 = 0


@s.data(versions="0", flexible="0+")
class KRaftVersionRecord:
    """The level of kraft.version (control type 5): 1 if Voters records name the voters."""

    version: s.Int16 = 0
    kraft_version: s.Int16 = 0


@s.struct
class Endpoint:
    """An address of a voter, by the name of its controller listener."""

    name: s.String = ""
    host: s.String = ""
    port: s.UInt16 = 0


@s.struct
class Voter:
    """A voter, its controller listeners, and the kraft.version levels that it supports."""

    voter_id: s.Int32 = 0
    voter_directory_id: s.Uuid = ZERO_UUID
    endpoints: list[Endpoint] = []
    kraft_version_feature: KRaftVersionFeature = s.field("0+", default_factory=KRaftVersionFeature)


@s.data(versions="0", flexible="0+")
class VotersRecord:
    """All voters, from this record on (control type 6)."""

    version: s.Int16 = 0
    voters: list[Voter] = []
