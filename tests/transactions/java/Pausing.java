import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Pausing ADDRESS TOPIC PARTITIONS TRANSACTIONS: writes `N-before` to each partition, prints `open N`, waits for
 * a line, writes `N-after`, and commits. Every third transaction is aborted. The outcomes are printed as `commit N`
 * or `abort N`.
 */
public class Pausing {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", "pausing");
        settings.put("request.timeout.ms", "500");
        settings.put("delivery.timeout.ms", "30000");
        settings.put("max.block.ms", "30000");
        settings.put("linger.ms", "0");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
                producer.beginTransaction();
                write(producer, topic, partitions, number + "-before");
                System.out.println("open " + number);
                in.readLine();
                write(producer, topic, partitions, number + "-after");
                if (number % 3 == 2) {
                    producer.abortTransaction();
                    System.out.println("abort " + number);
                } else {
                    producer.commitTransaction();
                    System.out.println("commit " + number);
                }
            }
        }
    }

    private static void write(KafkaProducer<String, String> producer, String topic, int partitions, String value) {
        for (int partition = 0; partition < partitions; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
        producer.flush();
    }
}
