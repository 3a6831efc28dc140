import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers, kept open by transactional id. */
final class Transactions {
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    private Transactions() { }

    static Map<String, Object> call(Arguments request) throws Exception {
        String id = request.text("id");
        switch (request.text("do")) {
            case "transaction_open":
                return open(id, request);
            case "transaction_end":
                return end(id, request);
            default:
                Map<String, Object> answer = open(id, request);
                end(id, request);
                return answer;
        }
    }

    private static Map<String, Object> open(String id, Arguments request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(id);
        if (producer == null) {
            producer = initialized(id, request);
            PRODUCERS.put(id, producer);
        }
        producer.beginTransaction();
        return Driver.sent(producer, request);
    }

    private static KafkaProducer<byte[], byte[]> initialized(String id, Arguments request) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", request.text("bootstrap"));
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", String.valueOf(request.number("timeout_ms", 60_000)));
        settings.put("linger.ms", "20");
        Driver.secure(settings);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
        } catch (RuntimeException failure) {
            producer.close();
            throw failure;
        }
        return producer;
    }

    private static Map<String, Object> end(String id, Arguments request) {
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(id);
        if (request.text("end").equals("commit")) producer.commitTransaction();
        else producer.abortTransaction();
        return new LinkedHashMap<>();
    }
}
