"""Java, franz-go and kafkajs log in with the settings of KafkaBroker(security=…), in campaigns."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.testing import KafkaBroker
from tests.support import campaign, kafka_jars, node_modules

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="in campaigns")

CLIENTS = Path(__file__).parents[1] / "clients"

JAVA = """
public class Log {
    public static void main(String[] arguments) throws Exception {
        var settings = new java.util.Properties();
        settings.load(new java.io.FileReader(arguments[0]));
        var text = new org.apache.kafka.common.serialization.StringSerializer();
        var producer = new org.apache.kafka.clients.producer.KafkaProducer<>(settings, text, text);
        var record = new org.apache.kafka.clients.producer.ProducerRecord<String, String>("flights", "EWR");
        System.out.println(producer.send(record).get().offset());
    }
}
"""
GO = """package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"kafka-compat/clients/access"
)

func main() {
	client, _ := kgo.NewClient(append(access.Options(), kgo.AllowAutoTopicCreation())...)
	record := &kgo.Record{Topic: "flights", Value: []byte("EWR")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		panic(err)
	}
	fmt.Println(record.Offset)
}
"""
NODE = """
const { Kafka } = require('kafkajs')
const producer = new Kafka(require('./kafkajs.js')).producer()
producer.connect()
  .then(() => producer.send({ topic: 'flights', messages: [{ value: 'EWR' }] }))
  .then(([sent]) => console.log(sent.baseOffset))
  .then(() => producer.disconnect())
"""


@pytest.fixture(scope="module", params=["mtls", "oauthbearer", "plain", "scram"])
def broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    with KafkaBroker(security=request.param, users={"alice": 'a\\"s'}) as broker:
        yield broker


def _offset(broker: KafkaBroker, *command: str, folder: Path) -> None:
    """Run a program that produces a record to a new topic, and check that it prints the offset 0."""
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr + broker.log
    assert ran.stdout == "0\n"
    broker.reset()


@pytest.mark.parametrize("release", ["3.9.1", "4.1.0"])
def test_java_logs_in(broker: KafkaBroker, tmp_path: Path, release: str) -> None:
    (tmp_path / "Log.java").write_text(JAVA)
    settings = broker.client_file("java", tmp_path)
    options = [broker.issuer.java_option] if "OAUTHBEARER" in settings.read_text() else []
    command = ["java", *options, "-cp", kafka_jars.class_path(release), "Log.java", str(settings)]
    _offset(broker, *command, folder=tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_franz_go_logs_in(broker: KafkaBroker, tmp_path: Path) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(CLIENTS / "go" / name, tmp_path)
    (tmp_path / "main.go").write_text(GO)
    (tmp_path / "access").mkdir()
    broker.client_file("franz-go", tmp_path / "access")
    _offset(broker, "go", "run", "-mod=mod", ".", folder=tmp_path)


@pytest.mark.skipif(node_modules.missing() is not None, reason="Node.js is not installed")
def test_kafkajs_logs_in(broker: KafkaBroker, tmp_path: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CLIENTS / "node" / name, tmp_path)
    (tmp_path / "log.js").write_text(NODE)
    broker.client_file("kafkajs", tmp_path)
    _offset(broker, *node_modules.command(tmp_path / "log.js"), folder=tmp_path)
