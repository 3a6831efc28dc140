"""Kafka's own tools print the same for three brokers of this project as for three of Apache Kafka 3.9.1,
except for ids, sizes and times.

The tests run in sequence on the clusters of tests/tools/clusters.py, and each one leaves all brokers running.
A daily run executes some of them, a campaign all. tests/tools/test_client_metrics.py tests client-metrics,
which Apache Kafka rejects with ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import campaign
from tests.tools.clusters import Clusters, both_clusters

long_only = pytest.mark.skipif(
    not campaign.enabled(), reason="all tests of three brokers each: needs --campaign"
)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with both_clusters(tmp_path_factory.mktemp("clusters")) as found:
        yield found


def partitions(*places: tuple[str, int, dict[str, Any]]) -> dict[str, Any]:
    listed = [{"topic": topic, "partition": partition, **more} for topic, partition, more in places]
    return {"version": 1, "partitions": listed}


DESCRIPTIONS = """
    --describe
    --describe --under-replicated-partitions
    --describe --unavailable-partitions
    --describe --at-min-isr-partitions
    --describe --under-min-isr-partitions
"""
"""Arguments for kafka-topics, checked after every change."""


IMPATIENT = "--command-config {files}/impatient"


def test_cluster_descriptions_match_kafkas(clusters: Clusters) -> None:
    clusters.same(
        "kafka-topics",
        f"""
        --list
        --list --exclude-internal
        --describe --topics-with-overrides
        --describe --topic alpha|beta
        --describe --topic absent
        {DESCRIPTIONS}
        """,
    )
    clusters.same(
        "kafka-log-dirs",
        """
        --describe
        --describe --broker-list 2,3 --topic-list alpha,beta
        --describe --broker-list 1,4
        """,
    )
    clusters.same_files("--deep-iteration --print-data-log", "alpha-*/*.log")
    clusters.same_files("--deep-iteration --print-data-log", "ledger-*/*.log")
    clusters.same_files("--offsets-decoder", "__consumer_offsets-*/*.log")
    clusters.same_files("--transaction-log-decoder", "__transaction_state-*/*.log")


@long_only
def test_kafka_get_offsets_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.same(
        "kafka-get-offsets",
        """
        --topic alpha
        --topic-partitions alpha:1-,beta:0,ledger
        --topic __transaction_state
        --topic alpha --time -2
        --topic alpha --time -3
        --topic alpha --time 1700000000010
        --topic absent
        """,
    )


@long_only
def test_cluster_feature_and_quorum_tools_print_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.same("kafka-cluster", "cluster-id\nunregister --id 9")
    clusters.same("kafka-features", "upgrade --feature a=1")
    clusters.same("kafka-metadata-quorum", "describe --status\ndescribe --replication")
    clusters.same("kafka-broker-api-versions", "--version")


@long_only
def test_kafka_topics_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.same(
        "kafka-topics",
        f"""
        --create --topic new --replica-assignment 1:2,2:3
        --create --topic new --replica-assignment 1:2
        --create --topic new --replica-assignment 1:2 --if-not-exists
        --create --topic bad --replica-assignment 1:2,3
        --create --topic bad --replica-assignment 1:1
        --create --topic strange --replica-assignment 1:9
        --create --topic bad --partitions 1 --replication-factor 4
        --create --topic bad --partitions 0 --replication-factor 1
        --create --topic bad --partitions 1 --replication-factor 0
        --create --topic bad --partitions 2 --replication-factor 3 --config nonsense=1
        --create --topic bad --replica-assignment 1 --config retention.ms=never
        --create --topic a.b --replica-assignment 1
        --create --topic a_b --replica-assignment 1
        --create --topic sp$ce --replica-assignment 1
        --create --topic wide --replica-assignment 1:2:3 --config min.insync.replicas=3
        --create --topic two --replica-assignment 2:3:1 --config min.insync.replicas=2
        --alter --topic new --partitions 1
        --alter --topic new --partitions 2
        --alter --topic new --partitions 4 --replica-assignment 1:2,2:3,3:1,1:3
        --alter --topic new --partitions 6 --replica-assignment 1:2,2:3,3:1,1:3,2:1
        --alter --topic new --partitions 5 --replica-assignment 1:2,2:3,3:1,1:3,2:1:3
        --alter --topic new --partitions 5 --replica-assignment 1:2,2:3,3:1,1:3,2:2
        --alter --topic new --partitions 5 --replica-assignment 1:2,2:3,3:1,1:3,2:9
        --alter --topic absent --partitions 3
        --alter --topic absent --partitions 3 --if-exists
        {DESCRIPTIONS}
        --delete --topic new
        --delete --topic a.b
        --delete --topic absent
        --delete --topic absent --if-exists
        --list
        """,
    )


@long_only
def test_kafka_configs_prints_the_same_output_as_kafka_for_brokers(clusters: Clusters) -> None:
    clusters.same(
        "kafka-configs",
        """
        --describe --entity-type brokers
        --describe --entity-type brokers --entity-name 2
        --alter --entity-type brokers --entity-name 2 --add-config log.cleaner.threads=2
        --alter --entity-type brokers --entity-default --add-config log.retention.ms=7200000
        --alter --entity-type brokers --entity-name 3 --add-config log.retention.ms=7300000
        --describe --entity-type brokers
        --describe --entity-type brokers --entity-default
        --describe --entity-type brokers --entity-name 1
        --describe --entity-type brokers --entity-name 3
        --alter --entity-type brokers --entity-name 3 --delete-config log.retention.ms
        --alter --entity-type brokers --entity-default --add-config listeners=PLAINTEXT://127.0.0.1:9
        --alter --entity-type brokers --entity-name 2 --delete-config log.cleaner.threads
        --alter --entity-type brokers --entity-default --delete-config log.retention.ms
        --describe --entity-type brokers
        --alter --entity-type broker-loggers --entity-name 2 --add-config kafka.nonsense=DEBUG
        --alter --entity-type broker-loggers --entity-name 2 --add-config root=LOUD
        --alter --entity-type broker-loggers --entity-name 2 --delete-config root
        --alter --entity-type topics --entity-name alpha --add-config flush.ms=100
        --describe --entity-type topics --entity-name alpha
        --describe --entity-type topics --entity-name alpha --all
        --alter --entity-type topics --entity-name alpha --delete-config flush.ms
        """,
    )


@long_only
def test_kafka_configs_prints_the_same_output_as_kafka_for_all_settings_of_a_broker(
    clusters: Clusters,
) -> None:
    """Settings that exist only in this project, and settings whose defaults differ, are excluded."""
    own = r"kafka\.compat|(broker\.id|node\.id|listeners|log\.dir|zookeeper\.connect)="
    clusters.same("kafka-configs", "--describe --entity-type brokers --entity-name 2 --all", but=own)


@long_only
def test_kafka_configs_prints_the_same_output_as_kafka_for_quotas_and_users(clusters: Clusters) -> None:
    zoe = "--zookeeper {store} --entity-type users --entity-name zoe"
    clusters.same(
        "kafka-configs",
        f"""
        --alter --entity-type clients --entity-name app --add-config consumer_byte_rate=1000
        --alter --entity-type users --entity-default --add-config producer_byte_rate=2000
        --alter --user ann --client-defaults --add-config producer_byte_rate=9
        --describe --entity-type clients
        --describe --entity-type users
        --describe --entity-type users --entity-type clients
        --describe --user ann --client-defaults
        --alter --entity-type ips --entity-default --add-config connection_creation_rate=1000
        --alter --entity-type ips --entity-name 127.0.0.9 --add-config connection_creation_rate=10
        --alter --entity-type ips --entity-name nowhere.invalid --add-config connection_creation_rate=10
        --describe --entity-type ips
        --alter --entity-type ips --entity-default --delete-config connection_creation_rate
        --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=8192,password=a]
        --describe --entity-type users --entity-name bob
        --describe --entity-type users
        --alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-256
        {zoe} --alter --add-config SCRAM-SHA-256=[iterations=4096,password=x]
        {zoe} --describe
        --describe --entity-type users --entity-name zoe
        {zoe} --alter --delete-config SCRAM-SHA-256
        --describe --entity-type users --entity-name zoe
        --zookeeper {{store}} --alter --entity-type brokers --entity-name 2 --add-config log.cleaner.threads=2
        """,
    )


@long_only
def test_kafka_consumer_groups_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.same(
        "kafka-consumer-groups",
        """
        --list
        --list --state
        --list --type classic --state Empty
        --describe --group busy
        --describe --group busy --members --verbose
        --describe --group busy --state
        --describe --group idle
        --describe --group idle --state
        --describe --group absent --state
        --describe --all-groups
        --describe --all-groups --state
        --describe --all-groups --members
        --group reset --reset-offsets --topic alpha --to-earliest --execute
        --group reset --reset-offsets --all-topics --to-latest --dry-run
        --group reset --reset-offsets --topic alpha:0,1 --to-offset 5 --execute
        --group reset --reset-offsets --topic alpha:1 --shift-by -2 --execute
        --group fresh --reset-offsets --topic alpha --to-datetime 2023-11-14T22:13:20.010 --execute
        --describe --group reset
        --describe --group fresh
        --group busy --delete-offsets --topic alpha
        --group reset --delete-offsets --topic alpha:0
        --describe --group reset
        --delete --group busy
        --delete --group deleted --group absent
        --delete --group fresh --group reset
        --list
        """,
    )


def test_kafka_transactions_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.same(
        "kafka-transactions",
        """
        list
        list --duration-filter 3600000
        describe --transactional-id open
        describe --transactional-id done
        describe --transactional-id absent
        describe-producers --topic ledger --partition 1
        describe-producers --topic ledger --partition 0 --broker-id 1
        describe-producers --topic ledger --partition 0 --broker-id 3
        describe-producers --topic beta --partition 0 --broker-id 1
        describe-producers --topic hanging --partition 0
        find-hanging --broker-id 1
        find-hanging --broker-id 2
        find-hanging --broker-id 3
        find-hanging --topic lost
        find-hanging --topic ledger --partition 1
        abort --topic ledger --partition 0 --start-offset 500
        abort --topic hanging --partition 0 --start-offset 0
        describe-producers --topic hanging --partition 0
        find-hanging --topic hanging
        abort --topic lost --partition 0 --producer-id 4711 --producer-epoch 0 --coordinator-epoch 0
        find-hanging --broker-id 3
        """,
    )


def test_kafka_delete_records_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    offsets = ("cut", 0, {"offset": 3}), ("cut", 1, {"offset": -1}), ("cut", 2, {"offset": 999})
    clusters.write("cut.json", partitions(*offsets, ("beta", 0, {"offset": 0})))
    internal = ("__consumer_offsets", 0, {"offset": 2})
    clusters.write("again.json", partitions(("cut", 0, {"offset": 2}), internal))
    clusters.same(
        "kafka-delete-records",
        """
        --offset-json-file {files}/cut.json
        --offset-json-file {files}/again.json
        """,
    )
    clusters.same("kafka-get-offsets", "--topic cut --time earliest")


def test_kafka_reassign_partitions_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    clusters.write("topics.json", {"topics": [{"topic": "alpha"}, {"topic": "wide"}], "version": 1})
    clusters.write("one.json", {"topics": [{"topic": "heavy"}, {"topic": "set"}], "version": 1})
    clusters.write("heavy.json", partitions(("heavy", 0, {"replicas": [2]})))
    clusters.write("back.json", partitions(("heavy", 0, {"replicas": [1]})))
    moves = ("moved", 0, {"replicas": [3, 2]}), ("moved", 1, {"replicas": [3, 1, 2]})
    clusters.write("moved.json", partitions(*moves))
    clusters.write("both.json", partitions(("heavy", 0, {"replicas": [2]}), *moves))
    clusters.same(
        "kafka-reassign-partitions",
        """
        --generate --topics-to-move-json-file {files}/topics.json --broker-list 1,2,3
        --generate --topics-to-move-json-file {files}/topics.json --broker-list 1,2
        --generate --topics-to-move-json-file {files}/one.json --broker-list 3
        --list
        --execute --reassignment-json-file {files}/heavy.json --throttle 1
        --list
        --verify --reassignment-json-file {files}/heavy.json
        --execute --reassignment-json-file {files}/moved.json
        """,
    )
    throttles = """
        --describe --entity-type brokers
        --describe --entity-type topics --entity-name heavy
        --describe --entity-type topics --entity-name moved
    """
    clusters.same("kafka-configs", throttles)
    clusters.same("kafka-topics", "--describe --topic heavy\n--describe --under-replicated-partitions")
    clusters.same("kafka-log-dirs", "--describe --topic-list beta")
    clusters.same(
        "kafka-reassign-partitions",
        """
        --execute --reassignment-json-file {files}/moved.json --additional
        """,
    )
    clusters.until("moved", 3, [2, 3], 0)
    clusters.until("moved", 2, [1, 2, 3], 1)
    clusters.same(
        "kafka-reassign-partitions",
        """
        --list
        --verify --reassignment-json-file {files}/moved.json --preserve-throttles
        --verify --reassignment-json-file {files}/both.json
        --execute --reassignment-json-file {files}/heavy.json --throttle 2000 --additional
        """,
    )
    clusters.same("kafka-configs", throttles)
    clusters.same(
        "kafka-reassign-partitions",
        """
        --cancel --reassignment-json-file {files}/moved.json --preserve-throttles
        --cancel --reassignment-json-file {files}/heavy.json
        --list
        """,
    )
    clusters.same("kafka-configs", throttles)
    clusters.same("kafka-topics", "--describe --topic heavy")
    clusters.same(
        "kafka-reassign-partitions",
        """
        --execute --reassignment-json-file {files}/heavy.json
        """,
    )
    clusters.until("heavy", 2, [2])
    clusters.same(
        "kafka-reassign-partitions",
        """
        --verify --reassignment-json-file {files}/heavy.json
        --execute --reassignment-json-file {files}/back.json --throttle 100000000
        """,
    )
    clusters.until("heavy", 1, [1])
    clusters.same("kafka-configs", throttles)
    clusters.same("kafka-reassign-partitions", "--verify --reassignment-json-file {files}/back.json")
    clusters.same("kafka-configs", throttles)
    clusters.same("kafka-topics", "--describe")


def test_kafka_reassign_partitions_prints_the_same_output_as_kafka_for_moves_between_disks(
    clusters: Clusters,
) -> None:
    def to(disk: str, *brokers: int) -> dict[str, Any]:
        return {"replicas": list(brokers), "log_dirs": [f"{{folder}}/{broker}/{disk}" for broker in brokers]}

    for disk in ("disk-1", "disk-2"):
        clusters.write(f"{disk}.json", partitions(("set", 0, to(disk, 3)), ("beta", 0, to(disk, 2, 3))))
    clusters.write("mixed.json", partitions(("set", 0, {"replicas": [3], "log_dirs": ["any"]})))
    clusters.write("move.json", partitions(("set", 0, to("disk-2", 1))))
    clusters.write("nowhere.json", partitions(("set", 0, {"replicas": [1], "log_dirs": ["/nowhere"]})))
    clusters.write("unknown.json", partitions(("beta", 0, {"replicas": [2, 7]})))
    clusters.write("twice.json", partitions(("beta", 0, {"replicas": [2, 2]})))
    clusters.write("empty.json", partitions(("beta", 0, {"replicas": []})))
    clusters.write(
        "absent.json", partitions(("absent", 0, {"replicas": [2]}), ("beta", 9, {"replicas": [2]}))
    )
    for disk in ("disk-1", "disk-2"):
        throttle = "--throttle 10000000 --replica-alter-log-dirs-throttle 10000000"
        clusters.same(
            "kafka-reassign-partitions",
            f"--execute --reassignment-json-file {{files}}/{disk}.json {throttle}",
        )
        clusters.same("kafka-configs", "--describe --entity-type brokers")
        clusters.same("kafka-reassign-partitions", f"--verify --reassignment-json-file {{files}}/{disk}.json")
    clusters.same(
        "kafka-reassign-partitions",
        """
        --execute --reassignment-json-file {files}/mixed.json
        --verify --reassignment-json-file {files}/mixed.json
        --execute --reassignment-json-file {files}/move.json
        """,
    )
    clusters.until("set", 1, [1])
    clusters.same(
        "kafka-reassign-partitions",
        """
        --verify --reassignment-json-file {files}/move.json
        --execute --reassignment-json-file {files}/nowhere.json --timeout 3000
        --execute --reassignment-json-file {files}/unknown.json
        --execute --reassignment-json-file {files}/twice.json
        --execute --reassignment-json-file {files}/empty.json
        --execute --reassignment-json-file {files}/absent.json
        --verify --reassignment-json-file {files}/absent.json
        --cancel --reassignment-json-file {files}/absent.json
        """,
    )
    clusters.same("kafka-configs", "--describe --entity-type brokers")
    clusters.same("kafka-topics", "--describe")


def test_kafka_leader_election_prints_the_same_output_as_kafka(clusters: Clusters) -> None:
    """After the reassignment in the previous test, one leader is not the preferred one."""
    clusters.write("elect.json", partitions(("alpha", 0, {}), ("absent", 0, {}), ("moved", 1, {})))
    clusters.same(
        "kafka-leader-election",
        """
        --election-type preferred --topic alpha --partition 0
        --election-type preferred --topic absent --partition 0
        --election-type unclean --topic alpha --partition 0
        --election-type preferred --path-to-json-file {files}/elect.json
        --election-type preferred --all-topic-partitions
        --election-type unclean --all-topic-partitions
        """,
    )
    clusters.until("moved", 3, [1, 2, 3], 1)
    clusters.same("kafka-topics", DESCRIPTIONS)


@long_only
def test_invalid_commands_are_rejected_with_kafkas_output(clusters: Clusters) -> None:
    configs = """
        min.insync.replicas=0 cleanup.policy=burn compression.gzip.level=99 retention.ms=-2 segment.bytes=1
        leader.replication.throttled.replicas=a remote.storage.enable=true local.retention.ms=-1
        message.format.version=0.9 nonsense=1
    """
    create = "--create --topic refused --replica-assignment 1"
    for item in configs.split():
        clusters.same("kafka-topics", f"{create} --config {item}")
    clusters.same(
        "kafka-topics",
        f"""
        {create} --config max.compaction.lag.ms=1 --config min.compaction.lag.ms=2
        --create --topic __cluster_metadata --replica-assignment 1
        --describe --topic-id AAAAAAAAAAAAAAAAAAAAAA
        """,
    )
    of_alpha = "--alter --entity-type topics --entity-name alpha"
    of_ann = "--alter --entity-type users --entity-name ann"
    clusters.same(
        "kafka-configs",
        f"""
        {of_alpha} --add-config retention.ms=-5
        {of_alpha} --add-config nonsense=1
        {of_alpha} --delete-config nonsense
        {of_alpha} --add-config leader.replication.throttled.replicas=0:a
        {of_alpha} --add-config leader.replication.throttled.replicas=[0:1,1:2]
        {of_alpha} --add-config max.message.bytes=-1
        --describe --entity-type topics --entity-name alpha
        --alter --entity-type topics --entity-name al$pha --add-config retention.ms=1
        --describe --entity-type brokers --entity-name x
        {of_ann} --add-config producer_byte_rate=-1
        {of_ann} --add-config producer_byte_rate=x
        {of_ann} --add-config controller_mutation_rate=1.5
        {of_ann} --add-config SCRAM-SHA-256=[iterations=99999,password=a]
        {of_ann} --add-config SCRAM-SHA-1=[iterations=9999,password=a]
        {of_ann} --delete-config SCRAM-SHA-256
        --describe --entity-type users --entity-name ann
        --alter --entity-type users --entity-default --add-config SCRAM-SHA-256=[password=a]
        --alter --entity-type clients --entity-name a --add-config connection_creation_rate=1
        --alter --entity-type ips --entity-name 1.2.3.4 --add-config producer_byte_rate=1
        """,
    )
    clusters.same("kafka-delegation-tokens", "--describe\n--create --max-life-time-period -1")
    clusters.same("kafka-acls", "--list\n--add --allow-principal User:a --operation Read --topic alpha")
    clusters.same(
        "kafka-transactions",
        """
        find-hanging
        find-hanging --topic absent
        abort --topic ledger --partition 1 --producer-id 0 --producer-epoch 7 --coordinator-epoch 0
        abort --topic ledger --partition 1 --start-offset 0
        """,
    )
    clusters.same(
        "kafka-consumer-groups",
        """
        --describe --group busy --group idle --state
        --reset-offsets --all-groups --to-earliest --topic alpha --dry-run
        --delete-offsets --group absent --topic absent
        --list --state Dead,Stable
        --list --state Wrong
        --list --type share
        --delete --group busy --group absent
        """,
    )
    clusters.same(
        "kafka-features",
        """
        upgrade --metadata 3.9
        upgrade --feature a=0
        upgrade --feature a=1 --dry-run
        downgrade --feature a=0
        downgrade --feature metadata.version=3 --unsafe
        disable --feature a
        """,
    )
    clusters.same("kafka-get-offsets", "--topic alpha --time soon\n--topic-partitions alpha:0-9,beta")
    clusters.same("kafka-log-dirs", "--describe --broker-list x")


@long_only
def test_tools_print_the_same_output_as_kafka_while_a_broker_is_down(clusters: Clusters) -> None:
    clusters.write(
        "elect.json", partitions(("alpha", 1, {}), ("absent", 0, {}), ("beta", 0, {}), ("few", 0, {}))
    )
    clusters.stop(2)
    clusters.until("beta", 3, [3])
    clusters.until("alpha", 3, [1, 3], 1)
    clusters.same("kafka-topics", DESCRIPTIONS)
    elections = """
        --election-type preferred --topic alpha --partition 1
        --election-type preferred --topic alpha --partition 0
        --election-type unclean --topic alpha --partition 1
        --election-type preferred --path-to-json-file {files}/elect.json
        --election-type unclean --path-to-json-file {files}/elect.json
        --election-type preferred --all-topic-partitions
        --election-type unclean --all-topic-partitions
    """
    clusters.same("kafka-leader-election", elections)
    clusters.same("kafka-get-offsets", f"--topic alpha|beta|few|ledger {IMPATIENT}")
    clusters.same("kafka-log-dirs", "--describe\n--describe --broker-list 1,2")
    clusters.same("kafka-consumer-groups", "--describe --all-groups --state\n--describe --group idle")
    clusters.same("kafka-transactions", "list\nfind-hanging --broker-id 1\ndescribe --transactional-id done")
    clusters.write("away.json", partitions(("set", 0, {"replicas": [2]})))
    clusters.same("kafka-reassign-partitions", "--execute --reassignment-json-file {files}/away.json")
    clusters.same(
        "kafka-topics",
        """
        --create --topic away --replica-assignment 1:2
        --create --topic bad --replication-factor 3 --partitions 1
        --alter --topic wide --partitions 2 --replica-assignment 1:2:3,1:3:2
        """,
    )
    clusters.stop(3)
    clusters.until("few", -1, [3])
    clusters.until("alpha", 1, [1], 1)
    clusters.same("kafka-topics", DESCRIPTIONS)
    clusters.same("kafka-leader-election", elections)
    clusters.same("kafka-get-offsets", f"--topic alpha|beta|few|ledger {IMPATIENT}")
    clusters.start(2, led_only=True)
    clusters.same("kafka-topics", DESCRIPTIONS)
    clusters.same(
        "kafka-leader-election",
        """
        --election-type preferred --topic few --partition 0
        --election-type unclean --topic few --partition 0
        --election-type unclean --topic few --partition 0
        --election-type unclean --all-topic-partitions
    """,
    )
    clusters.start(3)
    clusters.same("kafka-topics", DESCRIPTIONS)
    clusters.same(
        "kafka-leader-election",
        """
        --election-type preferred --topic alpha --partition 1
        --election-type preferred --path-to-json-file {files}/elect.json
        --election-type preferred --all-topic-partitions
        --election-type preferred --all-topic-partitions
    """,
    )
    clusters.same("kafka-topics", DESCRIPTIONS)


@long_only
def test_tools_print_the_same_output_as_kafka_when_a_topic_is_deleted_during_its_reassignment(
    clusters: Clusters,
) -> None:
    clusters.write("a.json", partitions(("heavy", 0, {"replicas": [2]}), ("cut", 0, {"replicas": [2, 3, 1]})))
    clusters.write("b.json", partitions(("heavy", 0, {"replicas": [3, 2]})))
    clusters.write("c.json", partitions(("heavy", 0, {"replicas": [1]})))
    look = "kafka-topics", "--describe\n--describe --under-replicated-partitions"
    settings = "--describe --entity-type brokers\n--describe --entity-type topics"
    execute = "--execute --reassignment-json-file {files}"
    verify = "--verify --reassignment-json-file {files}"
    clusters.same("kafka-reassign-partitions", f"{execute}/a.json --throttle 1\n--list")
    clusters.same("kafka-topics", "--alter --topic heavy --partitions 3")
    clusters.same(*look)
    clusters.same("kafka-reassign-partitions", f"{verify}/a.json")
    clusters.same("kafka-configs", settings)
    clusters.same("kafka-reassign-partitions", f"{execute}/b.json --additional --throttle 2")
    clusters.same(*look)
    clusters.same("kafka-reassign-partitions", f"{verify}/a.json\n{verify}/b.json")
    clusters.same("kafka-reassign-partitions", f"{execute}/c.json --additional\n--list\n{verify}/c.json")
    clusters.same("kafka-configs", settings)
    clusters.same("kafka-reassign-partitions", f"{execute}/a.json --throttle 1")
    clusters.same("kafka-topics", "--delete --topic heavy\n--list")
    clusters.same(
        "kafka-reassign-partitions",
        """
        --list
        --cancel --reassignment-json-file {files}/a.json
        """,
    )
    clusters.same(*look)
    clusters.same("kafka-configs", settings)
    clusters.same("kafka-log-dirs", "--describe")
    clusters.same("kafka-leader-election", "--election-type preferred --all-topic-partitions")


@long_only
def test_tools_print_the_same_output_as_kafka_after_the_controller_has_left(clusters: Clusters) -> None:
    """The controller was also the coordinator of groups and transactions."""
    clusters.write("cut-alpha.json", partitions(("alpha", 0, {"offset": 5}), ("alpha", 1, {"offset": -1})))
    clusters.stop(1)
    clusters.until("alpha", 2, [2, 3], 0)
    clusters.same("kafka-topics", DESCRIPTIONS)
    clusters.same("kafka-consumer-groups", "--describe --all-groups --state\n--describe --all-groups")
    clusters.same(
        "kafka-transactions",
        """
        list
        describe --transactional-id open
        describe-producers --topic ledger --partition 1
        find-hanging --broker-id 2
        """,
    )
    clusters.same("kafka-delete-records", "--offset-json-file {files}/cut-alpha.json")
    clusters.same("kafka-get-offsets", "--topic alpha --time -2")
    every = "--entity-type brokers --entity-default"
    clusters.same("kafka-configs", f"--alter {every} --add-config log.retention.ms=7200000")
    clusters.same("kafka-configs", "--describe --entity-type brokers")
    clusters.same(
        "kafka-topics",
        """
        --create --topic later --replica-assignment 1:2,2:3,3:2
        --describe --topic later
        --delete --topic later
        --list
        """,
    )
    clusters.start(1)
    clusters.same("kafka-topics", f"--list\n{DESCRIPTIONS}")
    clusters.same("kafka-configs", "--describe --entity-type brokers")
    clusters.same("kafka-log-dirs", "--describe")
    clusters.same("kafka-leader-election", "--election-type preferred --all-topic-partitions")
    clusters.same("kafka-topics", DESCRIPTIONS)
    for topic in ("alpha", "hanging", "ledger"):
        clusters.same_files("--deep-iteration --print-data-log", f"{topic}-*/*.log")
    clusters.same_files("--transaction-log-decoder", "__transaction_state-*/*.log")
