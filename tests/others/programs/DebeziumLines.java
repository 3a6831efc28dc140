import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes the lines of a file to a topic with Debezium's engine, whose offsets are in another topic.
 *
 * Arguments: bootstrap servers, file, topic for offsets, output topic.
 */
public final class DebeziumLines {
    private DebeziumLines() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("name", "lines");
        settings.put("connector.class", "org.apache.kafka.connect.file.FileStreamSourceConnector");
        settings.put("file", arguments[1]);
        settings.put("topic", "lines");
        settings.put("offset.storage", "org.apache.kafka.connect.storage.KafkaOffsetBackingStore");
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("offset.storage.topic", arguments[2]);
        settings.put("offset.storage.partitions", "1");
        settings.put("offset.storage.replication.factor", "1");
        settings.put("offset.flush.interval.ms", "500");
        settings.put("converter.schemas.enable", "false");
        KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", arguments[0]), new StringSerializer(), new StringSerializer());
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                .using(settings)
                .using((succeeded, message, error) -> System.out.println("ended: " + message + " " + error))
                .notifying((lines, committer) -> {
                    for (ChangeEvent<String, String> line : lines) {
                        String number = line.value().replace("\"", "");
                        String key = number.substring(number.length() - 1);
                        try {
                            producer.send(new ProducerRecord<>(arguments[3], key, number)).get();
                        } catch (java.util.concurrent.ExecutionException error) {
                            throw new IllegalStateException(error);
                        }
                        committer.markProcessed(line);
                    }
                    committer.markBatchFinished();
                })
                .build();
        engine.run();
        System.exit(1);
    }
}
