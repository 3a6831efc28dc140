import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Reactions of Kafka's own client to each error of each API. For each line `api code` of the input, the control API
 * injects that error into the response to one request, and the program uses a client that sends such a request.
 * It prints the line that tests/control/test_errors.py reads: api, code, whether the client considers the error
 * retriable, the number of affected requests, and the client's reaction. For a line `lose true`, an idempotent
 * producer sends a record to topic `once` whose response is lost. For `lose false`, a producer without idempotence
 * sends one to topic `twice`.
 */
public final class GivenErrors {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static String bootstrap;
    private static String control;
    private static int used = 0;

    interface Use {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        control = arguments[1];
        Map<String, Use> uses = new HashMap<>();
        uses.put("Produce", GivenErrors::produce);
        uses.put("Fetch", GivenErrors::fetch);
        uses.put("FindCoordinator", GivenErrors::commit);
        uses.put("OffsetCommit", GivenErrors::commit);
        uses.put("JoinGroup", GivenErrors::join);
        uses.put("EndTxn", GivenErrors::transact);
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split(" ");
            if (asked[0].equals("lose")) {
                lose(Boolean.parseBoolean(asked[1]));
                continue;
            }
            Errors error = Errors.forCode(Short.parseShort(asked[1]));
            used++;
            ask("POST", "/faults", "{\"api\": \"" + asked[0] + "\", \"error\": \"" + error + "\", \"count\": 1"
                + (asked[0].equals("Produce") || asked[0].equals("Fetch") ? ", \"topic\": \"t\"" : "") + "}");
            String said = "served";
            try {
                uses.get(asked[0]).run();
            } catch (Exception caught) {
                said = told(caught, error);
            }
            String hits = ask("GET", "/faults", null).replaceAll("(?s).*\"hits\": ?(\\d+).*", "$1");
            ask("DELETE", "/faults", null);
            boolean passes = error.exception() instanceof RetriableException;
            System.out.println(asked[0] + "\t" + asked[1] + "\t" + passes + "\t" + hits + "\t" + said);
        }
    }

    /** Return whether the client reported this error, judging by its class, text or code. */
    private static String told(Throwable caught, Errors error) {
        List<String> chain = new ArrayList<>();
        for (Throwable each = caught; each != null; each = each.getCause()) {
            String text = String.valueOf(each.getMessage());
            if (each.getClass() == error.exception().getClass() || text.contains(error.message())
                || text.contains("error code " + error.code() + " ")) {
                return "told";
            }
            chain.add(each.getClass().getSimpleName() + ": " + text.replaceAll("\\s+", " "));
        }
        return String.join(" <- ", chain);
    }

    private static void produce() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>("t", new byte[1])).get();
        }
    }

    private static void lose(boolean idempotent) throws Exception {
        String topic = idempotent ? "once" : "twice";
        ask("POST", "/faults", "{\"api\": \"Produce\", \"lose_answer\": true, \"count\": 1, \"topic\": \"" + topic + "\"}");
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("enable.idempotence", idempotent))) {
            producer.send(new ProducerRecord<>(topic, new byte[1])).get();
        }
    }

    private static void transact() throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", "id-" + used));
        try {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("transacted", new byte[1])).get();
            producer.commitTransaction();
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private static void fetch() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(List.of(new TopicPartition("t", 0)));
            consumer.seek(new TopicPartition("t", 0), 0);
            await(consumer);
        }
    }

    private static void commit() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            TopicPartition partition = new TopicPartition("t", 0);
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0)));
        }
    }

    private static void join() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.subscribe(List.of("t"));
            await(consumer);
        }
    }

    private static void await(KafkaConsumer<byte[], byte[]> consumer) {
        long endsMs = System.currentTimeMillis() + 20_000;
        while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
            if (System.currentTimeMillis() > endsMs) {
                throw new IllegalStateException("no records");
            }
        }
    }

    private static Map<String, Object> settings() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("retry.backoff.ms", 10);
        settings.put("retry.backoff.max.ms", 20);
        return settings;
    }

    private static KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> settings = settings();
        settings.put("max.block.ms", 20_000);
        settings.putAll(more);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer() {
        Map<String, Object> settings = settings();
        settings.put("group.id", "java-" + used);
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.api.timeout.ms", 20_000);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static String ask(String method, String path, String body) throws Exception {
        HttpRequest.BodyPublisher text =
            body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + path)).method(method, text).build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 400) {
            throw new IllegalStateException(answer.body());
        }
        return answer.body();
    }
}
