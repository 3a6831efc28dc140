"""Kafka's own tools print the same for this broker as for Apache Kafka 3.9.1, except for ids, sizes and
times.

The commands of each table run one after another, on both brokers concurrently. tests/tools/world.py creates
the initial state. test_client_metrics.py tests client-metrics, which Apache Kafka rejects with ZooKeeper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.tools.world import Pair


def same(pair: Pair, tool: str, commands: str) -> None:
    """Run each line's arguments on both brokers. Raises AssertionError with all differences."""
    lines = [line for line in commands.splitlines() if line.strip()]
    found = [line for command in lines for line in pair.differences(tool, command.split())]
    assert not found, "\n".join(found)


def partitions(*places: tuple[str, int, Mapping[str, object]]) -> str:
    listed = [{"topic": topic, "partition": partition, **more} for topic, partition, more in places]
    return json.dumps({"version": 1, "partitions": listed})


def test_kafka_dump_log_prints_the_same_output_as_kafka(pair: Pair) -> None:
    same(
        pair,
        "kafka-dump-log",
        """
        --print-data-log alpha-*/*.log
        --deep-iteration --print-data-log beta-0/*.log
        --deep-iteration ledger-*/*.log
        ledger-*/*.txnindex
        --offsets-decoder __consumer_offsets-0/*.log
        --transaction-log-decoder __transaction_state-0/*.log
        --skip-record-metadata --offsets-decoder __consumer_offsets-0/*.log
        --max-bytes 100 alpha-0/*.log
        """,
    )


def test_kafka_consumer_groups_prints_the_same_output_as_kafka(pair: Pair) -> None:
    same(
        pair,
        "kafka-consumer-groups",
        """
        --list
        --list --state
        --list --state Stable
        --list --type
        --list --type classic --state Empty
        --list --type consumer
        --describe --group busy
        --describe --group busy --members --verbose
        --describe --group busy --state
        --describe --group busy --offsets --verbose
        --describe --group idle
        --describe --group idle --members
        --describe --group idle --state
        --describe --group absent
        --describe --group absent --members
        --describe --group absent --state
        --describe --group copier
        --describe --all-groups
        --describe --all-groups --state
        """,
    )


def test_group_offsets_are_reset_and_deleted(pair: Pair) -> None:
    same(
        pair,
        "kafka-consumer-groups",
        """
        --group busy --reset-offsets --topic alpha --to-earliest --execute
        --group reset --reset-offsets --all-topics --to-latest --dry-run
        --group reset --reset-offsets --topic alpha:0,1 --to-offset 5 --execute
        --group reset --reset-offsets --topic alpha --to-offset 500 --dry-run
        --group reset --reset-offsets --topic alpha:0 --shift-by -2 --execute
        --group reset --reset-offsets --topic alpha:0 --shift-by -200 --dry-run
        --group reset --reset-offsets --topic alpha --to-current --export --dry-run
        --group reset --reset-offsets --topic alpha --by-duration P10000D --dry-run
        --group reset --reset-offsets --topic alpha --to-datetime 2023-11-14T22:13:20.010 --execute
        --group reset --reset-offsets --topic absent --to-earliest --dry-run
        --group fresh --reset-offsets --topic alpha --to-earliest --execute
        --describe --group reset
        --describe --group fresh
        --group busy --delete-offsets --topic alpha
        --group reset --delete-offsets --topic alpha:0
        --group reset --delete-offsets --topic absent
        --group absent --delete-offsets --topic alpha
        --describe --group reset
        --delete --group busy
        --delete --group absent
        --delete --group deleted --group absent
        --delete --group fresh --group reset
        --describe --group deleted
        """,
    )


def test_kafka_transactions_prints_the_same_output_as_kafka(pair: Pair) -> None:
    same(
        pair,
        "kafka-transactions",
        """
        list
        list --duration-filter 3600000
        describe --transactional-id open
        describe --transactional-id done
        describe --transactional-id absent
        describe-producers --topic ledger --partition 1
        describe-producers --topic ledger --partition 0 --broker-id 1
        describe-producers --topic hanging --partition 0
        find-hanging --broker-id 1
        find-hanging --topic lost
        find-hanging --topic ledger --partition 1
        abort --topic ledger --partition 0 --start-offset 500
        abort --topic hanging --partition 0 --start-offset 0
        describe-producers --topic hanging --partition 0
        find-hanging --topic hanging
        abort --topic lost --partition 0 --producer-id 4711 --producer-epoch 0 --coordinator-epoch 0
        find-hanging --broker-id 1
        """,
    )


def test_kafka_leader_election_prints_the_same_output_as_kafka(pair: Pair) -> None:
    pair.write("elect.json", partitions(("alpha", 0, {}), ("absent", 0, {}), ("beta", 0, {})))
    same(
        pair,
        "kafka-leader-election",
        """
        --election-type preferred --topic alpha --partition 0
        --election-type preferred --all-topic-partitions
        --election-type unclean --topic alpha --partition 0
        --election-type unclean --all-topic-partitions
        --election-type preferred --topic absent --partition 0
        --election-type preferred --topic alpha --partition 9
        --election-type preferred --path-to-json-file {files}/elect.json
        """,
    )


def test_kafka_log_dirs_prints_the_same_output_as_kafka(pair: Pair) -> None:
    same(
        pair,
        "kafka-log-dirs",
        """
        --describe
        --describe --broker-list 1
        --describe --broker-list 1,9
        --describe --topic-list alpha,beta
        --describe --topic-list absent
        """,
    )


def test_kafka_configs_prints_the_same_output_as_kafka_for_topics(pair: Pair) -> None:
    same(
        pair,
        "kafka-configs",
        """
        --describe --entity-type topics
        --describe --entity-type topics --entity-name alpha
        --alter --entity-type topics --entity-name set --add-config max.message.bytes=2000,flush.ms=100
        --describe --entity-type topics --entity-name set
        --describe --entity-type topics --entity-name set --all
        --alter --entity-type topics --entity-name set --delete-config flush.ms
        --alter --entity-type topics --entity-name set --delete-config flush.ms
        --alter --entity-type topics --entity-name absent --add-config flush.ms=1
        --describe --entity-type topics --entity-name absent
        --alter --entity-type topics --entity-name set --add-config flush.ms=never
        --alter --entity-type topics --entity-name set --add-config nonsense=1
        --alter --entity-type topics --entity-name set --add-config cleanup.policy=[compact,delete]
        --describe --entity-type topics --entity-name set
        """,
    )


def test_kafka_configs_prints_the_same_output_as_kafka_for_brokers(pair: Pair) -> None:
    same(
        pair,
        "kafka-configs",
        """
        --describe --entity-type brokers --entity-name 1
        --describe --entity-type brokers --entity-default
        --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2
        --alter --entity-type brokers --entity-default --add-config log.retention.ms=7200000
        --describe --entity-type brokers --entity-name 1
        --describe --entity-type brokers
        --alter --entity-type brokers --entity-name 1 --add-config broker.id=4
        --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=many
        --alter --entity-type brokers --entity-name 1 --add-config sasl.jaas.config=abc
        --alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.threads
        --alter --entity-type brokers --entity-default --delete-config log.retention.ms
        --describe --entity-type brokers
        --alter --entity-type broker-loggers --entity-name 1 --add-config kafka.nonsense=DEBUG
        """,
    )


def test_invalid_broker_settings_are_rejected_with_kafkas_output(pair: Pair) -> None:
    given = """
        background.threads=100 background.threads=4 background.threads=0 log.cleaner.threads=3
        num.io.threads=3 num.network.threads=9 num.replica.fetchers=3 num.recovery.threads.per.data.dir=5
        log.retention.ms=0 log.roll.ms=0 log.roll.jitter.ms=-1 producer.id.expiration.ms=-1
        log.cleaner.dedupe.buffer.size=1000 min.insync.replicas=0 max.connections.per.ip=-1
        unclean.leader.election.enable=maybe log.cleanup.policy=burn compression.type=best
        message.max.bytes=-1 log.message.timestamp.type=Never listeners=nonsense advertised.listeners=X://a:1
        log.segment.bytes=1 log.flush.interval.messages=0 follower.replication.throttled.rate=-1
        leader.replication.throttled.rate=many ssl.keystore.type=JKS log.message.format.version=2.0
        transaction.partition.verification.enable=perhaps listener.name.plaintext.max.connections=-2
        log.local.retention.bytes=-7 zookeeper.connect=a
        listener.name.plaintext.ssl.keystore.location=/nowhere
    """
    words = "--alter --entity-type brokers --entity-name 1 --add-config"
    same(pair, "kafka-configs", "\n".join(f"{words} {item}" for item in given.split()))
    words = "--alter --entity-type brokers --entity-default --add-config"
    same(pair, "kafka-configs", f"{words} listeners=PLAINTEXT://:1\n{words} num.io.threads=99")
    same(pair, "kafka-configs", "--describe --entity-type brokers")


def test_kafka_configs_prints_the_same_output_as_kafka_for_quotas_and_users(pair: Pair) -> None:
    of_bob = "--entity-type users --entity-name bob"
    of_both = "--entity-type users --entity-name ann --entity-type clients --entity-name app"
    same(
        pair,
        "kafka-configs",
        f"""
        --describe --entity-type users
        --alter --entity-type clients --entity-name app --add-config consumer_byte_rate=1000
        --alter --entity-type clients --entity-default --add-config consumer_byte_rate=1
        --describe --entity-type clients --entity-name app
        --describe --entity-type clients
        --describe --entity-type clients --entity-default
        --alter --entity-type users --entity-name ann --add-config producer_byte_rate=9,request_percentage=50
        --describe --entity-type users
        --alter {of_both} --add-config producer_byte_rate=10
        --describe {of_both}
        --describe --entity-type users --entity-type clients
        --alter --entity-type clients --entity-name app --add-config nonsense=10
        --alter --entity-type clients --entity-name app --delete-config consumer_byte_rate
        --alter --entity-type clients --entity-name app --delete-config consumer_byte_rate
        --describe --entity-type clients
        --alter --entity-type ips --entity-name 127.0.0.1 --add-config connection_creation_rate=10
        --describe --entity-type ips
        --alter {of_bob} --add-config SCRAM-SHA-256=[iterations=8192,password=a],SCRAM-SHA-512=[password=b]
        --alter {of_bob} --add-config SCRAM-SHA-256=[iterations=9,password=secret]
        --describe {of_bob}
        --describe --entity-type users
        --alter {of_bob} --delete-config SCRAM-SHA-512
        --alter {of_bob} --delete-config SCRAM-SHA-512
        --describe {of_bob}
        """,
    )


def test_kafka_delete_records_prints_the_same_output_as_kafka(pair: Pair) -> None:
    offsets = ("cut", 0, {"offset": 3}), ("cut", 1, {"offset": -1}), ("cut", 2, {"offset": 999})
    pair.write("cut.json", partitions(*offsets, ("beta", 0, {"offset": 0})))
    pair.write("again.json", partitions(("cut", 0, {"offset": 2}), ("__consumer_offsets", 0, {"offset": 2})))
    pair.write("twice.json", partitions(("cut", 0, {"offset": 2}), ("cut", 0, {"offset": 3})))
    pair.write("nothing.json", partitions())
    same(
        pair,
        "kafka-delete-records",
        """
        --offset-json-file {files}/cut.json
        --offset-json-file {files}/again.json
        --offset-json-file {files}/twice.json
        --offset-json-file {files}/nothing.json
        """,
    )
    same(pair, "kafka-get-offsets", "--topic cut --time earliest")


def test_kafka_get_offsets_prints_the_same_output_as_kafka(pair: Pair) -> None:
    same(
        pair,
        "kafka-get-offsets",
        """
        --exclude-internal-topics --topic alpha|beta|ledger
        --topic alpha --time -1
        --topic alpha --time -2
        --topic alpha --time -3
        --topic alpha --time latest-tiered
        --topic alpha --time earliest-local
        --topic alpha --time 1700000000010
        --topic alpha --time 1900000000010
        --topic alpha --partitions 0,2
        --topic alpha --partitions 9
        --topic absent
        --topic-partitions alpha:1-,beta:0
        --topic-partitions .*a:0 --exclude-internal-topics
        --topic __transaction_state
        """,
    )


def test_kafka_reassign_partitions_prints_the_same_output_as_kafka(pair: Pair) -> None:
    pair.write("topics.json", json.dumps({"topics": [{"topic": "moved"}, {"topic": "beta"}], "version": 1}))
    pair.write("stay.json", partitions(("beta", 0, {"replicas": [1], "log_dirs": ["any"]})))
    moves = [("moved", number, {"replicas": [1], "log_dirs": ["{disk}"]}) for number in (0, 1)]
    pair.write("move.json", partitions(*moves))
    pair.write("unknown-broker.json", partitions(("beta", 0, {"replicas": [7]})))
    pair.write("unknown-topic.json", partitions(("absent", 0, {"replicas": [1]})))
    pair.write("unknown-disk.json", partitions(("beta", 0, {"replicas": [1], "log_dirs": ["/nowhere"]})))
    throttles = "--throttle 10000000 --replica-alter-log-dirs-throttle 10000000"
    same(
        pair,
        "kafka-reassign-partitions",
        f"""
        --generate --topics-to-move-json-file {{files}}/topics.json --broker-list 1
        --generate --topics-to-move-json-file {{files}}/topics.json --broker-list 1,2
        --list
        --execute --reassignment-json-file {{files}}/stay.json
        --verify --reassignment-json-file {{files}}/stay.json
        --execute --reassignment-json-file {{files}}/move.json {throttles}
        """,
    )
    same(pair, "kafka-configs", "--describe --entity-type brokers --entity-name 1")
    same(pair, "kafka-configs", "--describe --entity-type topics --entity-name moved")
    pair.wait_until_moved("moved", 2)
    same(
        pair,
        "kafka-reassign-partitions",
        """
        --verify --reassignment-json-file {files}/move.json --preserve-throttles
        --verify --reassignment-json-file {files}/move.json
        --cancel --reassignment-json-file {files}/stay.json
        --execute --reassignment-json-file {files}/unknown-broker.json
        --execute --reassignment-json-file {files}/unknown-topic.json
        --verify --reassignment-json-file {files}/unknown-topic.json
        --cancel --reassignment-json-file {files}/unknown-topic.json
        --execute --reassignment-json-file {files}/unknown-disk.json --timeout 3000
        --verify --reassignment-json-file {files}/unknown-disk.json
        """,
    )
    same(pair, "kafka-configs", "--describe --entity-type brokers --entity-name 1")
