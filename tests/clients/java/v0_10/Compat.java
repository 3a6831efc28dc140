import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** kafka-clients 0.10.1 and 0.10.2: timestamps and offsets by time, but no headers and no admin client. */
final class Compat {
    private Compat() { }

    static void producerSettings(Properties settings, Arguments request) { }

    static void isolation(Map<String, Object> settings, String level) { }

    static ProducerRecord<byte[], byte[]> record(String topic, Arguments record) {
        Integer partition = record.get("partition") == null ? null : (int) record.number("partition", 0);
        Long timestamp = (Long) record.get("timestamp");
        byte[] key = Driver.bytes(record.get("key"));
        return new ProducerRecord<>(topic, partition, timestamp, key, Driver.bytes(record.get("value")));
    }

    static void describe(ConsumerRecord<byte[], byte[]> record, Map<String, Object> shown) {
        shown.put("timestamp", record.timestamp());
        shown.put("timestamp_type", record.timestampType().id);
    }

    static Iterable<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, long waitMs) {
        return consumer.poll(waitMs);
    }

    static void seekToBeginning(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts) {
        consumer.seekToBeginning(parts);
    }

    static void seekToEnd(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts) {
        consumer.seekToEnd(parts);
    }

    static Map<String, Object> offsetsForTimes(
            KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> parts, long timestamp) {
        Map<TopicPartition, Long> asked = new HashMap<>();
        for (TopicPartition part : parts) asked.put(part, timestamp);
        Map<String, Object> found = new LinkedHashMap<>();
        Map<TopicPartition, OffsetAndTimestamp> hits = consumer.offsetsForTimes(asked);
        for (TopicPartition part : parts) {
            OffsetAndTimestamp hit = hits.get(part);
            found.put(String.valueOf(part.partition()), hit == null ? null : hit.offset());
        }
        return found;
    }

    static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition part) {
        return consumer.committed(part);
    }

    static String strategy(String name) {
        return name.equals("roundrobin")
            ? "org.apache.kafka.clients.consumer.RoundRobinAssignor"
            : "org.apache.kafka.clients.consumer.RangeAssignor";
    }

    static Map<String, Object> transaction(Arguments request) {
        throw new UnsupportedOperationException("transactions came with 0.11");
    }

    static Map<String, Object> admin(Arguments request) {
        throw new UnsupportedOperationException("the admin client came with 0.11");
    }
}
