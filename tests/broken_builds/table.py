"""Deliberately broken builds, each with the test that detects it."""

from __future__ import annotations

from typing import NamedTuple

COORDINATORS = "tests/coordinator_runtime/"
GROUPS = (
    COORDINATORS + "test_group_state_matches_log.py::test_groups_have_the_same_state_before_and_after_loading"
)
TRANSACTIONS = (
    COORDINATORS
    + "test_transaction_state_matches_log.py::test_transactions_have_the_same_state_before_and_after_loading"
)
CONSUMER_GROUPS = (
    "tests/groups/consumer/test_simulation.py"
    "::test_no_partition_has_two_owners_although_the_coordinator_fails_over"
)
CONSUMER_GROUP_TRANSCRIPTS = (
    "tests/groups/consumer/test_transcripts.py"
    "::test_a_consumer_group_reacts_to_requests_as_each_transcript_describes"
)
SHARE_PARTITIONS = (
    "tests/share_partitions/test_simulation.py"
    "::test_no_record_is_lost_although_leaders_and_share_coordinators_fail_over"
)
SHARE_PARTITION_EVENTS = (
    "tests/share_partitions/test_random_events.py"
    "::test_every_record_is_acquired_once_at_a_time_and_none_is_lost"
)
SHARE_GROUPS = (
    "tests/groups/share/test_simulation.py"
    "::test_only_initialized_partitions_are_assigned_although_coordinators_fail_over"
)
FENCES = "tests/cluster/test_epoch_fencing.py::"
IN_SYNC = "tests/replication/test_in_sync.py::"
STORE_SERVER = "tests/coordination/store/test_store_server.py::"
TREE_MACHINE = "tests/coordination/replicated_store/test_tree_machine.py::"
REPLICATED_STORE = "tests/coordination/replicated_store/test_store.py::"
SESSION_TIMEOUTS = "tests/coordination/replicated_store/test_session_timeouts.py::"
SHARED_STORE_TESTS = "tests/coordination/store/test_metadata_store.py::"
KNOWN_CASES = "tests/simulation/test_known_cases.py::"
TOKENS = "tests/security/tokens/"
RAFT = "tests/coordination/raft/"
RAFT_SIMULATION = RAFT + "test_simulation.py::test_a_quorum_keeps_its_invariants_under_faults"


class BrokenBuild(NamedTuple):
    """A source change from `right` to `wrong`, and the test that must fail with it."""

    name: str
    file: str
    right: str
    wrong: str
    test: str


BROKEN_BUILDS = (
    BrokenBuild(
        "a leader does not compare the leader epoch of a fetch",
        "kafka_compat/replication/partition.py",
        "if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:",
        "if False:",
        FENCES + "test_fetches_with_a_different_leader_epoch_are_rejected",
    ),
    BrokenBuild(
        "a broker does not compare the leader epoch of LeaderAndIsr",
        "kafka_compat/cluster/leader_and_isr.py",
        "if state.leader_epoch <= held.leader_epoch:",
        "if False:",
        FENCES + "test_requests_without_a_higher_leader_epoch_are_rejected",
    ),
    BrokenBuild(
        "the controller does not compare the partition epoch of AlterPartition",
        "coordination/controller/isr_changes.py",
        "if change.partition_epoch < state.partition_epoch:",
        "if False:",
        FENCES + "test_the_controller_accepts_isr_changes_only_for_the_current_partition_epoch",
    ),
    BrokenBuild(
        "the high watermark does not wait for followers",
        "kafka_compat/replication/in_sync.py",
        "if state.log_end_offset < end and (",
        "if False and (",
        IN_SYNC + "test_the_high_watermark_is_the_lowest_end_offset_of_the_in_sync_replicas",
    ),
    BrokenBuild(
        "an ISR that is proposed does not count before the controller agrees",
        "kafka_compat/replication/in_sync.py",
        "        if self.pending is None:\n            return self.committed\n        return tuple",
        "        if True:\n            return self.committed\n        return tuple",
        IN_SYNC + "test_a_joining_follower_counts_before_the_controller_confirms_the_isr_change",
    ),
    BrokenBuild(
        "a follower that is proposed to leave the ISR counts no more before the controller agrees",
        "kafka_compat/replication/in_sync.py",
        "return tuple(dict.fromkeys((*self.committed, *self.pending.isr)))",
        "return self.pending.isr",
        IN_SYNC + "test_a_lagging_follower_holds_back_the_high_watermark_until_it_leaves_the_isr",
    ),
    BrokenBuild(
        "a follower joins the ISR before it has come to the start of the leader's epoch",
        "kafka_compat/replication/in_sync.py",
        "if end < high_watermark or end < epoch_start_offset:",
        "if end < high_watermark:",
        IN_SYNC + "test_a_follower_joins_the_isr_only_after_reaching_the_start_of_the_leader_epoch",
    ),
    BrokenBuild(
        "no truncation by epoch",
        "kafka_compat/replication/fetch_reader.py",
        "if target.last_fetched_epoch >= 0:",
        "if False:",
        KNOWN_CASES + "test_kip_279_logs_that_diverged_several_times_converge_after_quick_leader_changes",
    ),
    BrokenBuild(
        "truncation to the high watermark, as before KIP-101",
        "kafka_compat/replication/follower.py",
        "if partition.log.leader_epochs.latest_epoch < 0:",
        "if True:",
        KNOWN_CASES + "test_kip_101_a_follower_keeps_records_acknowledged_above_its_high_watermark",
    ),
    BrokenBuild(
        "a controller writes without comparing its epoch",
        "kafka_compat/cluster/controller_nodes.py",
        "check = stores.Check(znodes.CONTROLLER_EPOCH, epoch_znode_version)",
        "check = stores.Check(znodes.CONTROLLER_EPOCH, -1)",
        FENCES + "test_a_replaced_controller_cannot_write",
    ),
    BrokenBuild(
        "a broker does not compare controllers' epochs",
        "kafka_compat/cluster/controller_orders.py",
        "if controller_epoch < self.controller_epoch:",
        "if False:",
        FENCES + "test_requests_from_a_replaced_controller_are_rejected",
    ),
    BrokenBuild(
        "a broker does not compare its own epoch",
        "kafka_compat/cluster/controller_orders.py",
        "if UNKNOWN_EPOCH < broker_epoch < self._broker_epoch():",
        "if False:",
        FENCES + "test_requests_with_an_earlier_broker_epoch_are_rejected",
    ),
    BrokenBuild(
        "acks=all is answered by the leader alone",
        "kafka_compat/handlers/produce.py",
        "(partition.high_watermark if acks == -1 else partition.durable_end_offset) < needed",
        "partition.durable_end_offset < needed",
        FENCES + "test_acks_all_producers_and_consumers_wait_for_every_in_sync_replica",
    ),
    BrokenBuild(
        "min.insync.replicas is not asked after the append",
        "kafka_compat/replication/partition.py",
        "if self.is_under_min_isr and len(self.in_sync.maximal) < self.min_insync_replicas:",
        "if False:",
        IN_SYNC + "test_acks_all_reports_too_few_replicas_after_the_append",
    ),
    BrokenBuild(
        "unclean elections always",
        "coordination/controller/leader_election.py",
        "    if unclean_allowed:",
        "    if True:",
        "tests/coordination/controller/test_election.py::test_a_leader_is_elected_from_the_isr",
    ),
    BrokenBuild(
        "a follower appends what it has already",
        "storage/log/log.py",
        "headers = read_checked_headers(data, self.log_end_offset)",
        "headers = read_checked_headers(data, 0)",
        "tests/storage/log/test_log.py::test_a_follower_stores_its_leaders_batches_unless_they_are_corrupt",
    ),
    BrokenBuild(
        "a follower that drops an answer does not ask again for the high watermark in it",
        "kafka_compat/replication/follower.py",
        "                else:\n                    self._session.lost()\n",
        "",
        KNOWN_CASES + "test_a_high_watermark_sent_during_a_leader_epoch_change_is_sent_again",
    ),
    BrokenBuild(
        "a follower asks for nothing after it started anew",
        "kafka_compat/replication/partition.py",
        "        self.durable_end_offset = offset\n",
        "",
        KNOWN_CASES + "test_a_follower_behind_the_log_start_offset_restarts_from_that_offset",
    ),
    BrokenBuild(
        "a new leader asks for min.insync.replicas only after it has begun to commit",
        "kafka_compat/replication/replica_manager.py",
        "                held.min_insync_replicas = min_insync_replicas\n            held.become_leader(",
        "                self._call_soon(\n"
        "                    lambda: setattr(held, 'min_insync_replicas', min_insync_replicas)\n"
        "                )\n            held.become_leader(",
        IN_SYNC + "test_a_new_leader_below_min_isr_does_not_commit_records",
    ),
    BrokenBuild(
        "a deletion leaves what open transactions have written",
        "kafka_compat/groups/offsets.py",
        "                self._forget_pending(other, partition)\n"
        "            self.pending.remove(partition)\n",
        "                pass\n",
        GROUPS,
    ),
    BrokenBuild(
        "an offset of a transaction wins over one that was written after it",
        "kafka_compat/groups/offsets.py",
        "if committed and (known is None or known.log_offset < offset.log_offset):",
        "if committed:",
        GROUPS,
    ),
    BrokenBuild(
        "loading takes a deletion for nothing that open transactions need to know",
        "kafka_compat/coordinator_runtime/loader.py",
        "        if latest is self._latest:\n",
        "        if False:\n",
        GROUPS,
    ),
    BrokenBuild(
        "a group's record changes nothing if the group has no members",
        "kafka_compat/groups/group.py",
        "            self.classic.rebalance.stored.replay(record.value)\n",
        "            if record.value is None or record.value.members:\n"
        "                self.classic.rebalance.stored.replay(record.value)\n",
        GROUPS,
    ),
    BrokenBuild(
        "what was not committed in time never counts",
        "kafka_compat/coordinator_runtime/runtime.py",
        "                self._report(append, ErrorCode.REQUEST_TIMED_OUT)\n",
        "                self._report(append, ErrorCode.REQUEST_TIMED_OUT)\n"
        "                shard.appends.remove(append)\n",
        GROUPS,
    ),
    BrokenBuild(
        "what fewer replicas have than min.insync.replicas counts as lost",
        "kafka_compat/coordinator_runtime/coordinator_log.py",
        "error is ErrorCode.NONE or error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "error is ErrorCode.NONE",
        TRANSACTIONS,
    ),
    BrokenBuild(
        "the epoch of an abort is stored before its record is committed",
        "kafka_compat/transactions/transaction.py",
        "        self.status = self.status._replace(producer_epoch=epoch)\n",
        "        self.status = self.status._replace(producer_epoch=epoch)\n"
        "        self.stored.set(self.status)\n",
        TRANSACTIONS,
    ),
    BrokenBuild(
        "appended records count as committed",
        "kafka_compat/coordinator_runtime/runtime.py",
        "        shard.snapshots.begin(end_offset)\n        for record",
        "        for record",
        GROUPS,
    ),
    BrokenBuild(
        "the second of two uncommitted changes counts as committed with the first",
        "kafka_compat/coordinator_runtime/timeline.py",
        "        before.popleft()\n        if not before:\n",
        "        if True:\n",
        GROUPS,
    ),
    BrokenBuild(
        "a member gets a partition that another one has not released",
        "kafka_compat/groups/consumer/reconciliation.py",
        "            if is_owned_by_other(topic_id, partition):\n",
        "            if False:\n",
        CONSUMER_GROUPS,
    ),
    BrokenBuild(
        "a member goes on before it has revoked its partitions",
        "kafka_compat/groups/consumer/reconciliation.py",
        "    if revoked and _owns_any(owned, revoked):\n",
        "    if False:\n",
        CONSUMER_GROUPS,
    ),
    BrokenBuild(
        "partitions that a member must revoke count as free",
        "kafka_compat/groups/consumer/state.py",
        "        self._own(member.pending_revocation, member_id)\n",
        "",
        CONSUMER_GROUPS,
    ),
    BrokenBuild(
        "a heartbeat is answered before its records are committed",
        "kafka_compat/groups/consumer/members.py",
        "        self.outbox.respond_when_committed(waiter, result, _failed)\n",
        "        self.outbox.respond(waiter, result)\n",
        CONSUMER_GROUPS,
    ),
    BrokenBuild(
        "any former epoch of a member is accepted",
        "kafka_compat/groups/consumer/member_checks.py",
        "    if epoch == member.previous_epoch < member.epoch and _is_part_of",
        "    if epoch < member.epoch or _is_part_of",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "a topic that was created does not matter to a group",
        "kafka_compat/groups/consumer/members.py",
        "        self._must_compare_hash = True\n\n    def write_failed",
        "        pass\n\n    def write_failed",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "the session of a member ends only after a restart",
        "kafka_compat/groups/consumer/member_timers.py",
        "        self.start_session(member, now)\n        if not has_moved:",
        "        if not has_moved:",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "loading loses which partitions a member must revoke",
        "kafka_compat/groups/consumer/records.py",
        "        _partition_epochs(stored.partitions_pending_revocation, stored.member_epoch),\n",
        "        {},\n",
        GROUPS,
    ),
    BrokenBuild(
        "a static member that returns gets no partitions",
        "kafka_compat/groups/consumer/members.py",
        "        target = self.state.targets.current.get(member.member_id, {})\n        records.append",
        "        target = {}\n        returned = returned._replace(assigned={})\n        records.append",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "a group is converted although its new records are not stored",
        "kafka_compat/groups/classic/classic_group.py",
        "members.heartbeat(request, waiter, now, replaced)\n",
        "members.heartbeat(request, waiter, now, replaced)\n        self.rebalance.reset(now)\n",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "a converted group remembers the classic members",
        "kafka_compat/groups/classic/classic_group.py",
        "        self.rebalance.reset(now)\n        self._convertible",
        "        self._convertible",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "classic members lose their partitions when their group is converted",
        "kafka_compat/groups/consumer/conversion.py",
        "        if member.has_assignment:\n",
        "        if False:\n",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "a classic member of a consumer group may go on without SyncGroup",
        "kafka_compat/groups/consumer/classic_members.py",
        "        self._timers.set(timer, now.timer_ms + member.rebalance_timeout_ms)\n\n    def sync",
        "\n    def sync",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "the assignment interval is ignored",
        "kafka_compat/groups/consumer/members.py",
        "group_epoch <= known.epoch or is_recent",
        "group_epoch <= known.epoch",
        CONSUMER_GROUP_TRANSCRIPTS,
    ),
    BrokenBuild(
        "the end of a process is not the end of its sessions",
        "coordination/store/store_server.py",
        "        self._next_look.cancel()\n",
        "        self._next_look.cancel()\n        return\n",
        STORE_SERVER + "test_ephemeral_nodes_of_a_killed_process_are_deleted_immediately",
    ),
    BrokenBuild(
        "a process that stands still keeps its sessions",
        "coordination/store/store_server.py",
        "if not self._silence.is_too_long(self._loop.time()):",
        "if True:",
        STORE_SERVER + "test_a_paused_process_loses_its_session_and_is_notified",
    ),
    BrokenBuild(
        "answers of another process's store overtake its events",
        "coordination/store/remote_store.py",
        "self._loop.call_soon(_call, *watching, event)",
        "self._loop.call_later(0.01, _call, *watching, event)",
        "tests/coordination/store/test_metadata_store.py::"
        "test_a_watch_fires_only_once_and_before_the_change_is_readable[remote]",
    ),
    BrokenBuild(
        "a change can be read in the moment before its watches are called",
        "coordination/store/embedded.py",
        "            await asyncio.sleep(0)\n            batch.done",
        "            batch.done",
        "tests/coordination/store/test_embedded.py::test_a_change_is_readable_only_after_its_watch_has_fired",
    ),
    BrokenBuild(
        "a delegation token is renewed whatever another broker made of it",
        "kafka_compat/security/tokens/keeper.py",
        "stores.SetData(path, model.encode_token(wanted), known.version)",
        "stores.SetData(path, model.encode_token(wanted))",
        TOKENS + "test_token_store.py::test_a_broker_with_unread_notifications_uses_the_token_in_the_store",
    ),
    BrokenBuild(
        "who requested a delegation token for somebody may renew it",
        "kafka_compat/security/tokens/delegation_token.py",
        "if principal != token.owner and principal not in token.renewers:",
        "if not token.concerns(principal):",
        TOKENS
        + "test_token_lifecycle.py::test_only_the_owner_and_renewers_can_change_a_token_within_its_limits",
    ),
    BrokenBuild(
        "the holder of a delegation token may ask for another",
        "kafka_compat/handlers/token_requests.py",
        'if protocol == "PLAINTEXT" or isinstance(ctx.principal, TokenHolder):',
        'if protocol == "PLAINTEXT":',
        TOKENS + "test_standalone.py::test_a_client_authenticated_by_a_token_cannot_create_tokens",
    ),
    BrokenBuild(
        "a session outlives its delegation token",
        "kafka_compat/security/tokens/keeper.py",
        'TokenHolder("User", token.owner.name), token.expires_ms)',
        'TokenHolder("User", token.owner.name))',
        TOKENS + "test_standalone.py::test_a_session_expires_with_its_token_unless_the_token_is_renewed",
    ),
    BrokenBuild(
        "a broker's memory keeps a delegation token that another has removed",
        "kafka_compat/security/tokens/keeper.py",
        "        except stores.NoNode:\n            self._forget(token_id)\n            return",
        "        except stores.NoNode:\n            return",
        TOKENS + "test_token_store.py::test_changes_on_one_broker_reach_other_brokers",
    ),
    BrokenBuild(
        "the share coordinator stores the writes of a former leader",
        "kafka_compat/share_coordinator/share_partition_state.py",
        "        return _invalid(_WRITE_UNINITIALIZED)\n    if operation.leader_epoch < state.leader_epoch:",
        "        return _invalid(_WRITE_UNINITIALIZED)\n    if False:",
        SHARE_PARTITIONS,
    ),
    BrokenBuild(
        "the share coordinator responds before a write is committed",
        "kafka_compat/share_coordinator/share_partition_state.py",
        "        out.responses_when_committed.append(\n"
        "            ResponseWhenCommitted(respond, result, partial(_failed, operation))\n"
        "        )\n",
        "        respond(result)\n",
        SHARE_PARTITIONS,
    ),
    BrokenBuild(
        "a released record can be acquired before its release is stored",
        "kafka_compat/share_partitions/in_flight.py",
        "return self.state == AVAILABLE and self.pending is None",
        "return self.state == AVAILABLE",
        SHARE_PARTITION_EVENTS,
    ),
    BrokenBuild(
        "a new leader does not fence the former one",
        "kafka_compat/share_coordinator/share_partition_state.py",
        "    if operation.leader_epoch == state.leader_epoch:\n        return result, None\n",
        "    if True:\n        return result, None\n",
        SHARE_PARTITIONS,
    ),
    BrokenBuild(
        "the share coordinator keeps the lower of two delivery counts",
        "kafka_compat/share_coordinator/state_batches.py",
        "heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))",
        "heappush(covering, (batch.delivery_count, -batch.delivery_state, batch.last_offset))",
        SHARE_PARTITIONS,
    ),
    BrokenBuild(
        "a record is delivered once more than the limit",
        "kafka_compat/share_partitions/in_flight.py",
        "if state == AVAILABLE and self.delivery_count >= delivery_limit:",
        "if state == AVAILABLE and self.delivery_count > delivery_limit:",
        SHARE_PARTITION_EVENTS,
    ),
    BrokenBuild(
        "the start offset passes a record whose acknowledgement is not stored",
        "kafka_compat/share_partitions/share_partition.py",
        "                if run.pending is not None or not is_terminal(run.state):\n"
        "                    return end, count\n",
        "                if not is_terminal(run.state):\n                    return end, count\n",
        SHARE_PARTITION_EVENTS,
    ),
    BrokenBuild(
        "a snapshot of a share-partition contains only the last write",
        "kafka_compat/share_coordinator/share_partition_state.py",
        "        combine(whole.batches, update.batches, update.start_offset),\n",
        "        combine((), update.batches, update.start_offset),\n",
        "tests/share_coordinator/test_coordinator.py"
        "::test_a_snapshot_is_written_after_the_configured_number_of_updates",
    ),
    BrokenBuild(
        "the share coordinator stores writes from before an initialization",
        "kafka_compat/share_coordinator/share_partition_state.py",
        "    if operation.state_epoch < whole.state_epoch:\n"
        "        return rejected(ErrorCode.FENCED_STATE_EPOCH), None\n    if not exists:",
        "    if not exists:",
        "tests/share_coordinator/test_coordinator.py::test_epochs_fence_former_leaders_and_states",
    ),
    BrokenBuild(
        "a share group assigns partitions whose states are being initialized",
        "kafka_compat/groups/share/members.py",
        "assignable = {key: each.partitions for key, each in state.current_states.initialized.items()}",
        "known = {**state.current_states.initialized, **state.current_states.initializing}\n"
        "        assignable = {key: each.partitions for key, each in known.items()}",
        SHARE_GROUPS,
    ),
    BrokenBuild(
        "a replicated call is applied twice",
        "coordination/replicated_store/tree_machine.py",
        "change.call != session.last_call + 1:",
        "change.call < session.last_call:",
        TREE_MACHINE + "test_only_the_next_call_of_a_session_has_an_effect",
    ),
    BrokenBuild(
        "a replicated call whose predecessor is lost is applied",
        "coordination/replicated_store/tree_machine.py",
        "change.call != session.last_call + 1:",
        "change.call <= session.last_call:",
        TREE_MACHINE + "test_only_the_next_call_of_a_session_has_an_effect",
    ),
    BrokenBuild(
        "the ephemeral nodes of an ended session stay in the replicated tree",
        "coordination/replicated_store/tree_machine.py",
        "for path in sorted(session.ephemerals)]",
        "for path in ()]",
        TREE_MACHINE + "test_the_end_of_a_session_deletes_its_ephemeral_nodes",
    ),
    BrokenBuild(
        "a new incarnation does not end the sessions of the earlier one",
        "coordination/replicated_store/tree_machine.py",
        "if (earlier.node_id, earlier.directory_id) == (opened.node_id, opened.directory_id):",
        "if False:",
        TREE_MACHINE + "test_a_new_incarnation_ends_the_sessions_of_the_earlier_one_in_the_same_step",
    ),
    BrokenBuild(
        "a late record of an earlier incarnation opens a session",
        "coordination/replicated_store/tree_machine.py",
        "if opened.incarnation in known[:-1]:",
        "if False:",
        TREE_MACHINE + "test_a_new_incarnation_ends_the_sessions_of_the_earlier_one_in_the_same_step",
    ),
    BrokenBuild(
        "a snapshot of the replicated tree contains later changes",
        "coordination/store/tree.py",
        "yield path, self._kept.get(path) or self._tree.nodes[path].values()",
        'yield path, self._tree.nodes.get(path, self._tree.nodes["/"]).values()',
        TREE_MACHINE + "test_a_snapshot_shows_one_moment_although_the_tree_changes_while_it_is_read",
    ),
    BrokenBuild(
        "a snapshot of the replicated tree loses the outcomes of calls",
        "coordination/replicated_store/tree_machine.py",
        "entry.outcomes.extend(item.outcomes)",
        "pass",
        REPLICATED_STORE + "test_a_node_that_fell_behind_continues_from_a_snapshot",
    ),
    BrokenBuild(
        "replicated calls are not sent again to a new leader",
        "coordination/replicated_store/outbox.py",
        "        if is_known:\n            self.send_again()",
        "        if False:\n            self.send_again()",
        REPLICATED_STORE + "test_all_calls_are_sent_again_to_a_new_leader_and_wait_while_there_is_none",
    ),
    BrokenBuild(
        "only new replicated calls are sent after a failure",
        "coordination/replicated_store/outbox.py",
        "self._unsent.extend(self._outstanding())",
        "self._unsent.extend(list(self._outstanding())[-1:])",
        REPLICATED_STORE + "test_all_calls_are_sent_again_in_order_after_a_failure",
    ),
    BrokenBuild(
        "watches of the replicated tree fire after the change can be read",
        "coordination/replicated_store/store.py",
        "                session.fire(event)",
        "                self._loop.call_later(0.01, session.fire, event)",
        SHARED_STORE_TESTS + "test_a_change_is_readable_only_after_its_watch_has_fired[replicated]",
    ),
    BrokenBuild(
        "a read does not wait for the earlier calls of its replicated session",
        "coordination/replicated_store/session.py",
        "while self._calls:\n            await asyncio.wait",
        "while False:\n            await asyncio.wait",
        REPLICATED_STORE + "test_a_read_waits_for_the_earlier_calls_of_its_session",
    ),
    BrokenBuild(
        "the sessions of an earlier process are kept alive by its successor",
        "coordination/replicated_store/session_timeouts.py",
        "if latest[node_id][-1] == incarnation:",
        "if True:",
        SESSION_TIMEOUTS + "test_sessions_of_an_earlier_process_are_not_kept_alive_by_its_successor",
    ),
    BrokenBuild(
        "time during which the quorum's leader did not run is counted",
        "coordination/replicated_store/session_timeouts.py",
        "min(max(now_s - self._looked_s, 0.0), _STEP_S_MAX)",
        "max(now_s - self._looked_s, 0.0)",
        SESSION_TIMEOUTS + "test_time_during_which_the_leader_did_not_run_is_not_counted",
    ),
    BrokenBuild(
        "a follower fetches before its records are flushed",
        "coordination/raft/following.py",
        "if state.snapshot is None and self._is_flushed():",
        "if state.snapshot is None:",
        RAFT_SIMULATION,
    ),
    BrokenBuild(
        "records of an earlier epoch are committed without one of the leader's",
        "coordination/raft/leader_state.py",
        "reached <= self.start_offset or reached <= self.high_watermark",
        "reached <= self.high_watermark",
        RAFT + "test_leading.py::test_records_of_earlier_epochs_are_committed_only_with_one_of_this_epoch",
    ),
    BrokenBuild(
        "a vote is granted to a second candidate of an epoch",
        "coordination/raft/elections.py",
        "        if quorum.election.voted is not None:\n",
        "        if quorum.election.voted == event.candidate:\n",
        RAFT_SIMULATION,
    ),
    BrokenBuild(
        "logs are compared by their length alone",
        "coordination/raft/quorum_state.py",
        "return (last.epoch, last.offset) >= (self.log.last_epoch, self.log.end_offset)",
        "return last.offset >= self.log.end_offset",
        RAFT + "test_elections.py::test_a_log_is_compared_by_its_last_epoch_first",
    ),
    BrokenBuild(
        "a leader does not compare the last epoch of a fetch",
        "coordination/raft/log_state.py",
        "if end.epoch != last_epoch or end.offset < offset:",
        "if end.offset < offset:",
        RAFT + "test_leading.py::test_a_fetch_of_another_log_is_told_where_they_diverge",
    ),
    BrokenBuild(
        "a leader that restarts leads on",
        "coordination/raft/quorum_state.py",
        "        if election.leader_id == self.local.node_id:\n            self._become(",
        "        if election.leader_id == self.local.node_id:\n            self.become_leader(set())\n"
        "        elif election.leader_id == self.local.node_id:\n            self._become(",
        RAFT_SIMULATION,
    ),
    BrokenBuild(
        "a leader counts records that it has not flushed",
        "coordination/raft/leading.py",
        "quorum.state.flushed(quorum.log.flushed_end)",
        "quorum.state.flushed(quorum.log.end_offset)",
        RAFT_SIMULATION,
    ),
    BrokenBuild(
        "a flush that was under way counts for records that were truncated",
        "coordination/raft/log_state.py",
        "            self._flushing_end = min(self._flushing_end, offset)\n",
        "            pass\n",
        RAFT + "test_following.py::test_a_flush_counts_only_for_records_that_were_not_truncated",
    ),
    BrokenBuild(
        "followers grant pre-votes although they fetch",
        "coordination/raft/elections.py",
        "return up_to_date and (not state.has_fetched or state.is_leader_gone)",
        "return up_to_date",
        RAFT + "test_elections.py::test_a_follower_refuses_pre_votes_once_it_has_fetched",
    ),
    BrokenBuild(
        "a vote is not saved",
        "coordination/raft/quorum_state.py",
        "        if election != self.election:\n            self.election = election\n",
        "        if election != self.election:\n            self.election = election\n"
        "        if election.voted is None:\n",
        RAFT_SIMULATION,
    ),
    BrokenBuild(
        "a second change of the voters begins before the first is committed",
        "coordination/raft/voter_changes.py",
        "quorum.voter_change is not None or quorum.log.voters_offset >= leader.high_watermark",
        "quorum.voter_change is not None",
        RAFT + "test_voter_changes.py::test_only_one_change_is_under_way",
    ),
    BrokenBuild(
        "late answers to requests count",
        "coordination/raft/connections.py",
        "request is None or request.correlation_id != correlation_id",
        "request is None",
        RAFT + "test_elections.py::test_a_late_vote_does_not_count",
    ),
)
