import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.Network;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** Testcontainers' Java modules with this image. */
class ModulesTest {
    @Test
    void apache() throws Exception {
        try (KafkaContainer kafka = new KafkaContainer(image("apache/kafka"))) {
            kafka.start();
            producedIsConsumed(kafka.getBootstrapServers());
        }
    }

    @Test
    void apacheNative() throws Exception {
        try (KafkaContainer kafka = new KafkaContainer(image("apache/kafka-native"))) {
            kafka.start();
            producedIsConsumed(kafka.getBootstrapServers());
        }
    }

    @Test
    void confluent() throws Exception {
        try (ConfluentKafkaContainer kafka = new ConfluentKafkaContainer(image("confluentinc/cp-kafka"))) {
            kafka.start();
            producedIsConsumed(kafka.getBootstrapServers());
        }
    }

    @Test
    @SuppressWarnings("deprecation")
    void confluentOfOld() throws Exception {
        DockerImageName name = image("confluentinc/cp-kafka");
        try (var kafka = new org.testcontainers.containers.KafkaContainer(name)) {
            kafka.start();
            producedIsConsumed(kafka.getBootstrapServers());
        }
        try (var kafka = new org.testcontainers.containers.KafkaContainer(name).withKraft()) {
            kafka.start();
            producedIsConsumed(kafka.getBootstrapServers());
        }
    }

    @Test
    void clusterOfThree() throws Exception {
        try (Network network = Network.newNetwork()) {
            List<KafkaContainer> nodes = IntStream.range(0, 3).mapToObj(id -> new KafkaContainer(image("apache/kafka"))
                    .withNetwork(network)
                    .withNetworkAliases("node-" + id)
                    .withEnv("KAFKA_BROKER_ID", String.valueOf(id))
                    .withEnv("KAFKA_NODE_ID", String.valueOf(id))
                    .withEnv("KAFKA_CONTROLLER_QUORUM_VOTERS", "0@node-0:9094,1@node-1:9094,2@node-2:9094")).toList();
            try {
                nodes.parallelStream().forEach(KafkaContainer::start);
                String servers = nodes.stream().map(KafkaContainer::getBootstrapServers).collect(Collectors.joining(","));
                producedIsConsumed(servers, 3);
            } finally {
                nodes.forEach(KafkaContainer::stop);
            }
        }
    }

    private static DockerImageName image(String replaced) {
        return DockerImageName.parse(System.getenv("KAFKA_IMAGE")).asCompatibleSubstituteFor(replaced);
    }

    private static void producedIsConsumed(String bootstrapServers) throws Exception {
        producedIsConsumed(bootstrapServers, 1);
    }

    private static void producedIsConsumed(String bootstrapServers, int replicas) throws Exception {
        Map<String, Object> address = Map.of("bootstrap.servers", bootstrapServers);
        try (Admin admin = Admin.create(address)) {
            admin.createTopics(List.of(new NewTopic("flights", 3, (short) replicas))).all().get();
        }
        try (var producer = new KafkaProducer<>(address, new StringSerializer(), new StringSerializer())) {
            for (String airport : List.of("EWR", "JFK", "LGA")) {
                producer.send(new ProducerRecord<>("flights", airport, airport)).get();
            }
        }
        Map<String, Object> reading =
                Map.of("bootstrap.servers", bootstrapServers, "group.id", "g", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("flights"));
            List<String> found = List.of();
            for (int polls = 0; found.size() < 3 && polls < 100; polls++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                found = Stream.concat(found.stream(), records.partitions().stream()
                        .flatMap(partition -> records.records(partition).stream()).map(ConsumerRecord::value)).toList();
            }
            assertEquals(List.of("EWR", "JFK", "LGA"), found.stream().sorted().toList());
        }
    }
}
