import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a share group. The value of a record is its number, on which the acknowledgement depends.
 *
 * Arguments: bootstrap servers, topic, group, members, share.acknowledgement.mode, share.acquire.mode and
 * max.poll.records. The members leave when standard input ends. share_members.py describes the events, which are
 * written to standard output.
 */
public final class ShareMembers {
    private static final Duration POLL = Duration.ofMillis(200);
    private static volatile boolean isOver = false;

    private final String[] arguments;
    private final int number;

    private ShareMembers(String[] arguments, int number) {
        this.arguments = arguments;
        this.number = number;
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int each = 0; each < Integer.parseInt(arguments[3]); each++) {
            ShareMembers member = new ShareMembers(arguments, each);
            threads.add(new Thread(member::run, "member-" + each));
        }
        threads.forEach(Thread::start);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            // Commands have no content.
        }
        isOver = true;
        for (Thread each : threads) {
            each.join(30_000);
        }
        tell("end");
        System.exit(0);
    }

    private static void tell(String event) {
        synchronized (System.out) {
            System.out.println(event);
            System.out.flush();
        }
    }

    private void run() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("share.acknowledgement.mode", arguments[4]);
        settings.put("share.acquire.mode", arguments[5]);
        settings.put("max.poll.records", arguments[6]);
        settings.put("retry.backoff.max.ms", "200");
        settings.put("reconnect.backoff.max.ms", "200");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.setAcknowledgementCommitCallback(this::completed);
            consumer.subscribe(Collections.singleton(arguments[1]));
            boolean isExplicit = arguments[4].equals("explicit");
            Map<String, Integer> renewed = new HashMap<>();
            while (!isOver) {
                ConsumerRecords<byte[], byte[]> records;
                try {
                    records = consumer.poll(POLL);
                } catch (org.apache.kafka.common.errors.RetriableException failure) {
                    tell("failed " + number + " poll " + failure);
                    continue;
                }
                boolean isRenewed = false;
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    isRenewed |= acknowledge(consumer, record, isExplicit, renewed) == AcknowledgeType.RENEW;
                }
                if (isRenewed) {
                    // commitSync of kafka-clients 4.4.0 waits for renewals forever if the last of several brokers
                    // to respond got none: it notes only whether the last request contained renewals.
                    consumer.commitAsync();
                } else if (isExplicit && !records.isEmpty()) {
                    consumer.commitSync();
                }
            }
            if (!isExplicit) {
                consumer.commitSync();
            }
        } catch (Exception failure) {
            tell("failed " + number + " member " + failure);
        }
    }

    private AcknowledgeType acknowledge(
            KafkaShareConsumer<byte[], byte[]> consumer,
            ConsumerRecord<byte[], byte[]> record,
            boolean isExplicit,
            Map<String, Integer> renewed) {
        long value = Long.parseLong(new String(record.value()));
        int count = record.deliveryCount().orElse((short) -1);
        AcknowledgeType type = isExplicit ? typeOf(value, count) : AcknowledgeType.ACCEPT;
        if (isExplicit && value % 10 == 9) {
            // Renewed once per delivery, then accepted.
            String key = record.partition() + ":" + record.offset() + ":" + count;
            type = renewed.merge(key, 1, Integer::sum) == 1 ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT;
        }
        tell("delivered " + number + " " + record.partition() + " " + record.offset() + " " + value + " " + count
                + " " + type);
        if (isExplicit) {
            consumer.acknowledge(record, type);
        }
        return type;
    }

    private static AcknowledgeType typeOf(long value, int count) {
        switch ((int) (value % 10)) {
            case 3:
                return AcknowledgeType.RELEASE;
            case 5:
                return count == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
            case 7:
                return AcknowledgeType.REJECT;
            default:
                return AcknowledgeType.ACCEPT;
        }
    }

    private void completed(Map<TopicIdPartition, Set<Long>> offsets, Exception failure) {
        for (Map.Entry<TopicIdPartition, Set<Long>> each : offsets.entrySet()) {
            StringBuilder text = new StringBuilder(failure == null ? "completed " : "refused ");
            text.append(number).append(' ').append(each.getKey().partition());
            for (long offset : each.getValue()) {
                text.append(' ').append(offset);
            }
            if (failure != null) {
                text.append(' ').append(failure.getClass().getSimpleName());
            }
            tell(text.toString());
        }
    }
}
