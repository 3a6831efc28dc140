import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingShareConsumerAwareMessageListener;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;
import org.springframework.kafka.support.ShareAcknowledgment;

/**
 * A listener in a share container of Spring Kafka with two consumers. The value of a record is its number, on which
 * the acknowledgement depends.
 *
 * Arguments: bootstrap servers, topic, group, and the share acknowledgement mode. The container stops when standard
 * input ends. Each delivery is a line: partition, offset, number, delivery count, what the listener did.
 */
public final class SpringMembers {
    private SpringMembers() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings =
                Map.of("bootstrap.servers", arguments[0], "group.id", arguments[2], "max.poll.records", 50);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        ContainerProperties properties = new ContainerProperties(arguments[1]);
        properties.setGroupId(arguments[2]);
        properties.setShareAckMode(ContainerProperties.ShareAckMode.valueOf(arguments[3]));
        boolean isManual = properties.getShareAckMode() == ContainerProperties.ShareAckMode.MANUAL;
        AcknowledgingShareConsumerAwareMessageListener<byte[], byte[]> listener =
                (record, acknowledgment, consumer) -> handle(record, isManual ? acknowledgment : null);
        properties.setMessageListener(listener);
        ShareKafkaMessageListenerContainer<byte[], byte[]> container = new ShareKafkaMessageListenerContainer<>(
                new DefaultShareConsumerFactory<byte[], byte[]>(settings, bytes, bytes, true), properties);
        container.setBeanName("members");
        container.setConcurrency(2);
        container.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            // Commands have no content.
        }
        container.stop();
        System.exit(0);
    }

    /** Acknowledge a record. Without an acknowledgment, the container accepts it, or rejects it after an exception. */
    private static void handle(ConsumerRecord<?, byte[]> record, ShareAcknowledgment acknowledgment) {
        long number = Long.parseLong(new String(record.value()));
        int count = record.deliveryCount().orElse((short) -1);
        int digit = (int) (number % 10);
        if (digit == 7 && acknowledgment == null) {
            tell(record, number, count, "failed");
            throw new IllegalStateException("record " + number);
        } else if (acknowledgment == null) {
            tell(record, number, count, "returned");
        } else if (digit == 3 || (digit == 5 && count == 1)) {
            tell(record, number, count, "release");
            acknowledgment.release();
        } else if (digit == 7) {
            tell(record, number, count, "reject");
            acknowledgment.reject();
        } else {
            if (digit == 9) {
                acknowledgment.renew();
            }
            tell(record, number, count, "accept");
            acknowledgment.acknowledge();
        }
    }

    private static synchronized void tell(ConsumerRecord<?, ?> record, long number, int count, String what) {
        System.out.println(
                record.partition() + " " + record.offset() + " " + number + " " + count + " " + what);
        System.out.flush();
    }
}
