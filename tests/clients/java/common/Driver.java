import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A Java client behind the line protocol of drivers/channel.py, compiled against the jar of each version.
 * The Compat class of each release line (v0_9, v0_10, v1, v3) contains what differs between the versions' APIs.
 */
public final class Driver {
    private static final long LOCAL_FAILURE = -1000;
    private static final long UNKNOWN = -1;
    private final Map<String, Member> members = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Driver driver = new Driver();
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            @SuppressWarnings("unchecked")
            Map<String, Object> request = (Map<String, Object>) Json.parse(line);
            answers.println(Json.write(driver.answer(new Arguments(request))));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(Arguments request) {
        try {
            switch (request.text("do")) {
                case "produce": return produce(request);
                case "consume": return consume(request);
                case "offsets": return offsets(request);
                case "commit": return commit(request);
                case "committed": return committed(request);
                case "member_start": return memberStart(request);
                case "member_state": return members.get(request.text("member")).state();
                case "member_commit": return members.get(request.text("member")).commit();
                case "member_stop": return members.remove(request.text("member")).leave();
                case "transaction":
                case "transaction_open":
                case "transaction_end": return Compat.transaction(request);
                default: return Compat.admin(request);
            }
        } catch (Throwable failure) {
            return error(failure);
        }
    }

    static Map<String, Object> error(Throwable failure) {
        Throwable cause = failure;
        while (Errors.forException(cause).code() == UNKNOWN && cause.getCause() != null) {
            cause = cause.getCause();
        }
        long code = Errors.forException(cause).code();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("error", code == UNKNOWN ? LOCAL_FAILURE : code);
        answer.put("message", cause.toString());
        return answer;
    }

    static Map<String, Object> with(String name, Object value) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put(name, value);
        return answer;
    }

    static byte[] bytes(Object text) {
        return text == null ? null : ((String) text).getBytes(StandardCharsets.ISO_8859_1);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.ISO_8859_1);
    }

    /** Settings for brokers that require authentication or TLS; see support/client_security.py. */
    static void secure(Properties settings) {
        String file = System.getenv("CLIENT_SECURITY_PROPERTIES");
        if (file == null) {
            return;
        }
        try (java.io.InputStream stream = new java.io.FileInputStream(file)) {
            settings.load(stream);
        } catch (java.io.IOException error) {
            throw new IllegalStateException(error);
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Map<String, Object> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.putAll(more);
        secure(settings);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Map<String, Object> produce(Arguments request) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", request.text("bootstrap"));
        settings.put("compression.type", request.text("codec", "none"));
        settings.put("acks", request.text("acks", "all"));
        settings.put("linger.ms", "20");
        if (request.number("max_request_bytes", -1) > 0) {
            settings.put("max.request.size", String.valueOf(request.number("max_request_bytes", -1)));
        }
        Compat.producerSettings(settings, request);
        secure(settings);
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            return sent(producer, request);
        }
    }

    /** Sends the request's records, and waits for their results. */
    static Map<String, Object> sent(KafkaProducer<byte[], byte[]> producer, Arguments request) throws Exception {
        List<Object> results = new ArrayList<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (Arguments record : request.objects("records")) {
            try {
                sent.add(producer.send(Compat.record(request.text("topic"), record)));
            } catch (KafkaException failure) {
                // A failed producer accepts no more records; the number of accepted records varies.
                CompletableFuture<RecordMetadata> refused = new CompletableFuture<>();
                refused.completeExceptionally(failure);
                sent.add(refused);
            }
        }
        for (Future<RecordMetadata> future : sent) {
            try {
                RecordMetadata done = future.get(30, TimeUnit.SECONDS);
                results.add(Arrays.asList((long) done.partition(), done.offset()));
            } catch (ExecutionException failure) {
                results.add(with("error", error(failure).get("error")));
            }
        }
        return with("results", results);
    }

    private static Map<String, Object> consume(Arguments request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("auto.offset.reset", request.text("reset", "none"));
        Compat.isolation(settings, request.text("isolation", "read_uncommitted"));
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request.text("bootstrap"), settings)) {
            List<TopicPartition> parts = request.partitions();
            consumer.assign(parts);
            Object start = request.get("start");
            if ("earliest".equals(start)) Compat.seekToBeginning(consumer, parts);
            else if ("latest".equals(start)) Compat.seekToEnd(consumer, parts);
            else for (TopicPartition part : parts) consumer.seek(part, request.number("start", 0));
            long deadline = System.nanoTime() + (long) (request.decimal("timeout_s", 20) * 1e9);
            long count = request.number("count", 0);
            while (found.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : Compat.poll(consumer, 200)) {
                    Map<String, Object> one = new LinkedHashMap<>();
                    one.put("partition", record.partition());
                    one.put("offset", record.offset());
                    one.put("key", text(record.key()));
                    one.put("value", text(record.value()));
                    Compat.describe(record, one);
                    found.add(one);
                }
            }
        }
        return with("records", found);
    }

    private static Map<String, Object> offsets(Arguments request) {
        try (KafkaConsumer<byte[], byte[]> consumer =
                 consumer(request.text("bootstrap"), new HashMap<String, Object>())) {
            Map<String, Object> found = new LinkedHashMap<>();
            List<TopicPartition> parts = request.partitions();
            Object at = request.get("at");
            if (at instanceof Long) {
                return with("offsets", Compat.offsetsForTimes(consumer, parts, (Long) at));
            }
            consumer.assign(parts);
            if ("earliest".equals(at)) Compat.seekToBeginning(consumer, parts);
            else Compat.seekToEnd(consumer, parts);
            for (TopicPartition part : parts) {
                found.put(String.valueOf(part.partition()), consumer.position(part));
            }
            return with("offsets", found);
        }
    }

    private static Map<String, Object> inGroup(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("group.id", group);
        return settings;
    }

    private static Map<String, Object> commit(Arguments request) {
        try (KafkaConsumer<byte[], byte[]> consumer =
                 consumer(request.text("bootstrap"), inGroup(request.text("group")))) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            Arguments given = request.object("offsets");
            for (String number : given.names()) {
                List<Object> pair = given.list(number);
                offsets.put(
                    new TopicPartition(request.text("topic"), Integer.parseInt(number)),
                    new OffsetAndMetadata((Long) pair.get(0), (String) pair.get(1)));
            }
            consumer.assign(new ArrayList<>(offsets.keySet()));
            consumer.commitSync(offsets);
        }
        return new LinkedHashMap<>();
    }

    private static Map<String, Object> committed(Arguments request) {
        try (KafkaConsumer<byte[], byte[]> consumer =
                 consumer(request.text("bootstrap"), inGroup(request.text("group")))) {
            Map<String, Object> found = new LinkedHashMap<>();
            for (TopicPartition part : request.partitions()) {
                OffsetAndMetadata hit = Compat.committed(consumer, part);
                Object shown = hit == null ? null : Arrays.asList(hit.offset(), hit.metadata());
                found.put(String.valueOf(part.partition()), shown);
            }
            return with("committed", found);
        }
    }

    private Map<String, Object> memberStart(Arguments request) {
        Map<String, Object> settings = inGroup(request.text("group"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", String.valueOf(request.number("session_timeout_ms", 6000)));
        settings.put("heartbeat.interval.ms", "300");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("partition.assignment.strategy", Compat.strategy(request.text("strategy", "range")));
        if (request.get("instance") != null) settings.put("group.instance.id", request.text("instance"));
        List<String> topics = new ArrayList<>();
        for (Object topic : request.list("topics")) topics.add((String) topic);
        KafkaConsumer<byte[], byte[]> consumer = consumer(request.text("bootstrap"), settings);
        members.put(request.text("member"), new Member(consumer, topics));
        return new LinkedHashMap<>();
    }
}
