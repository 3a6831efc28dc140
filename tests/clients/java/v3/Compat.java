import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** kafka-clients 3.9.1, 4.1.0 and 4.4.0: the current API, with cooperative assignors and an admin client for groups. */
final class Compat {
    private Compat() { }

    static void producerSettings(Properties settings, Arguments request) {
        settings.put("enable.idempotence", String.valueOf(request.flag("idempotent")));
    }

    static void isolation(Map<String, Object> settings, String level) {
        settings.put("isolation.level", level);
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Arguments record) {
        Integer partition = record.get("partition") == null ? null : (int) record.number("partition", 0);
        Long timestamp = (Long) record.get("timestamp");
        byte[] key = Driver.bytes(record.get("key"));
        byte[] value = Driver.bytes(record.get("value"));
        List<Header> headers = new ArrayList<>();
        for (Object item : record.list("headers")) {
            List<?> pair = (List<?>) item;
            headers.add(new RecordHeader((String) pair.get(0), Driver.bytes(pair.get(1))));
        }
        return new ProducerRecord<>(topic, partition, timestamp, key, value, headers);
    }

    static void describe(ConsumerRecord<byte[], byte[]> record, Map<String, Object> shown) {
        shown.put("timestamp", record.timestamp());
        shown.put("timestamp_type", record.timestampType().id);
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), Driver.text(header.value())));
        }
        shown.put("headers", headers);
    }

    static Iterable<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, long waitMs) {
        return consumer.poll(Duration.ofMillis(waitMs));
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
        return consumer.committed(Collections.singleton(part)).get(part);
    }

    static String strategy(String name) {
        switch (name) {
            case "roundrobin": return "org.apache.kafka.clients.consumer.RoundRobinAssignor";
            case "cooperative-sticky": return "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
            default: return "org.apache.kafka.clients.consumer.RangeAssignor";
        }
    }

    static TopicDescription describe(AdminClient admin, String topic) throws Exception {
        return admin.describeTopics(Collections.singleton(topic)).allTopicNames().get().get(topic);
    }

    static Map<String, Object> transaction(Arguments request) throws Exception {
        return Transactions.call(request);
    }

    static Map<String, Object> admin(Arguments request) throws Exception {
        try (AdminClient admin = TopicAdmin.connect(request)) {
            Map<String, Object> answer = TopicAdmin.call(admin, request);
            if (answer != null) return answer;
            return groupsAndConfigs(admin, request);
        }
    }

    private static Map<String, Object> groupsAndConfigs(AdminClient admin, Arguments request) throws Exception {
        String group = request.text("group");
        switch (request.text("do")) {
            case "set_topic_config": {
                List<AlterConfigOp> changes = new ArrayList<>();
                for (Map.Entry<String, String> pair : TopicAdmin.texts(request.object("configs")).entrySet()) {
                    ConfigEntry entry = new ConfigEntry(pair.getKey(), pair.getValue());
                    changes.add(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
                }
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, request.text("topic"));
                Map<ConfigResource, Collection<AlterConfigOp>> all = Collections.singletonMap(resource, changes);
                admin.incrementalAlterConfigs(all).all().get();
                return new LinkedHashMap<>();
            }
            case "list_groups": {
                TreeSet<String> names = new TreeSet<>();
                admin.listConsumerGroups().all().get().forEach(found -> names.add(found.groupId()));
                return Driver.with("groups", names);
            }
            case "describe_group": {
                ConsumerGroupDescription found =
                    admin.describeConsumerGroups(Collections.singleton(group)).all().get().get(group);
                List<Integer> held = new ArrayList<>();
                found.members().forEach(member -> held.add(member.assignment().topicPartitions().size()));
                Collections.sort(held);
                Map<String, Object> shown = new LinkedHashMap<>();
                shown.put("state", found.state().toString().toLowerCase());
                shown.put("members", held);
                shown.put("hosts", held.size());
                return shown;
            }
            case "delete_group":
                admin.deleteConsumerGroups(Collections.singleton(group)).all().get();
                return new LinkedHashMap<>();
            case "group_offsets": {
                Map<String, Object> sorted = new TreeMap<>();
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
                    (part, hit) -> sorted.put(
                        part.toString(), Arrays.<Object>asList(part.topic(), part.partition(), hit.offset())));
                return Driver.with("offsets", sorted.values());
            }
            case "latest_by_admin": {
                Map<String, Object> found = new TreeMap<>();
                Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
                for (TopicPartition part : request.partitions()) asked.put(part, OffsetSpec.maxTimestamp());
                admin.listOffsets(asked).all().get().forEach(
                    (part, hit) -> found.put(String.valueOf(part.partition()), hit.offset()));
                return Driver.with("offsets", found);
            }
            default:
                throw new UnsupportedOperationException(request.text("do"));
        }
    }
}
