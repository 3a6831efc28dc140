import java.io.BufferedWriter;
import java.io.FileReader;
import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client of the producer programs described in tests/faults/producers.py. */
public final class AckedProducer {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long pauseMs = Long.parseLong(arguments[3]);
        AtomicBoolean stopping = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            waitForEndOfInput();
            stopping.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        PrintWriter acknowledgements = new PrintWriter(new BufferedWriter(new FileWriter(arguments[5])));
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings(arguments[0], arguments[4]), new ByteArraySerializer(), new ByteArraySerializer());
        long next = System.nanoTime();
        for (int number = 0; !stopping.get(); number++) {
            send(producer, acknowledgements, topic, number, partitions);
            next += pauseMs * 1_000_000;
            long waitMs = (next - System.nanoTime()) / 1_000_000;
            if (waitMs > 0) {
                Thread.sleep(waitMs);
            }
        }
        producer.close();
        acknowledgements.close();
    }

    private static Properties settings(String bootstrapServers, String requestTimeoutMs) throws IOException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("linger.ms", "2");
        settings.put("request.timeout.ms", requestTimeoutMs);
        settings.put("delivery.timeout.ms", "120000");
        settings.put("max.block.ms", "120000");
        // These include TLS: a paused broker accepts connections, but sends nothing. The default is 10 s.
        settings.put("socket.connection.setup.timeout.ms", "2000");
        settings.put("socket.connection.setup.timeout.max.ms", "2000");
        // See tests/support/client_security.py.
        String security = System.getenv("CLIENT_SECURITY_PROPERTIES");
        if (security != null) {
            try (FileReader file = new FileReader(security)) {
                settings.load(file);
            }
        }
        return settings;
    }

    private static void send(
        KafkaProducer<byte[], byte[]> producer, PrintWriter acknowledgements, String topic, int number, int partitions
    ) {
        int partition = number % partitions;
        StringBuilder value = new StringBuilder("java:" + number + ":");
        for (int i = number * 31 % 300; i > 0; i--) {
            value.append('x');
        }
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, partition, null, value.toString().getBytes());
        producer.send(record, (metadata, failure) -> {
            String outcome = failure == null ? String.valueOf(metadata.offset()) : String.valueOf(failure);
            acknowledgements.println(number + " " + partition + " " + System.currentTimeMillis() + " " + outcome);
            acknowledgements.flush();
        });
    }

    private static void waitForEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                // The input contains only its end.
            }
        } catch (IOException closed) {
            // A closed input counts as the end.
        }
    }
}
