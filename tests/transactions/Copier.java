import java.io.FileReader;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client of the copier program described in tests/transactions/copier.py: ADDRESS TOTAL. */
public final class Copier {
    private static final int SIZE = 50;
    private static final int ABORT_EVERY = 7;
    private static final TopicPartition SOURCE = new TopicPartition("source", 0);
    private static int transactions = 0;

    public static void main(String[] arguments) throws Exception {
        long total = Long.parseLong(arguments[1]);
        long end = System.nanoTime() + 600_000_000_000L;
        while (System.nanoTime() < end) {
            try {
                copyAll(arguments[0], total);
                return;
            } catch (RuntimeException failure) {
                // After any error, a new client repeats the incomplete transaction.
                System.err.println(failure);
                Thread.sleep(200);
            }
        }
        System.exit(1);
    }

    private static void copyAll(String address, long total) throws IOException {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                 settings(address, "transactional.id", "copier", "transaction.timeout.ms", "20000"),
                 new ByteArraySerializer(), new ByteArraySerializer());
             KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                 settings(address, "group.id", "copiers", "isolation.level", "read_committed",
                     "enable.auto.commit", "false", "max.poll.records", String.valueOf(SIZE)),
                 new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            producer.initTransactions();
            consumer.assign(List.of(SOURCE));
            OffsetAndMetadata committed = consumer.committed(Collections.singleton(SOURCE)).get(SOURCE);
            long position = committed == null ? 0 : committed.offset();
            consumer.seek(SOURCE, position);
            while (position < total) {
                List<ConsumerRecord<byte[], byte[]>> records = consumer.poll(Duration.ofSeconds(1)).records(SOURCE);
                if (records.isEmpty()) {
                    continue;
                }
                long after = position + records.size();
                producer.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(new ProducerRecord<>("target", 0, null, record.value()));
                }
                producer.sendOffsetsToTransaction(Map.of(SOURCE, new OffsetAndMetadata(after)), consumer.groupMetadata());
                if (++transactions % ABORT_EVERY != 0) {
                    producer.commitTransaction();
                    position = after;
                } else {
                    producer.flush();
                    producer.abortTransaction();
                    consumer.seek(SOURCE, position);
                }
            }
        }
    }

    private static Properties settings(String address, String... more) throws IOException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        for (int i = 0; i < more.length; i += 2) {
            settings.put(more[i], more[i + 1]);
        }
        // See tests/support/client_security.py.
        String security = System.getenv("CLIENT_SECURITY_PROPERTIES");
        if (security != null) {
            try (FileReader file = new FileReader(security)) {
                settings.load(file);
            }
        }
        return settings;
    }
}
