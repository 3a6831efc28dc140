// Testcontainers' Node.js module with this image, in its ZooKeeper and KRaft modes.
const { KafkaContainer } = require("@testcontainers/kafka");
const { Kafka, logLevel } = require("kafkajs");

async function producedIsConsumed(container) {
  const brokers = [`${container.getHost()}:${container.getMappedPort(9093)}`];
  const kafka = new Kafka({ brokers, logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "flights", messages: ["EWR", "JFK", "LGA"].map((value) => ({ value })) });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "readers" });
  await consumer.connect();
  await consumer.subscribe({ topic: "flights", fromBeginning: true });
  const found = [];
  await new Promise((resolve, reject) => {
    setTimeout(reject, 30000, new Error(`only ${found}`)).unref();
    consumer.run({
      eachMessage: async ({ message }) => {
        found.push(message.value.toString());
        if (found.length === 3) resolve();
      },
    });
  });
  await consumer.disconnect();
  return found;
}

async function main() {
  const image = process.env.KAFKA_IMAGE;
  for (const [mode, container] of [
    ["zookeeper", new KafkaContainer(image)],
    ["kraft", new KafkaContainer(image).withKraft()],
  ]) {
    const started = await container.start();
    try {
      console.log(`${mode}: ${(await producedIsConsumed(started)).join(" ")}`);
    } finally {
      await started.stop();
    }
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
