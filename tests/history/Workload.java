import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Workload ADDRESS TOPIC KEYS PROCESSES OPERATIONS SEED: runs transactions of up to four sends and polls in several
 * processes, and prints one line for each operation:
 *
 * <pre>PROCESS TYPE BEGIN_NS END_NS [s KEY VALUE OFFSET | p COUNT (KEY VALUE OFFSET)* | a COUNT KEY*]*</pre>
 *
 * A key is a partition. Few keys are in use at a time, each for 1,024 writes. TYPE is ok, fail or info. When a
 * client is replaced, its process gets a new, higher number. At the end, `drain` reads everything from the start.
 */
public class Workload {
    private static final int ACTIVE_KEYS = 4;
    private static final int WRITES_PER_KEY = 1024;
    private static final Duration POLL = Duration.ofMillis(20);

    private final String address;
    private final String topic;
    private final int keys;
    private final AtomicInteger remaining;
    private final AtomicInteger nextProcess = new AtomicInteger();
    private final AtomicIntegerArray written;

    private Workload(String address, String topic, int keys, int operations) {
        this.address = address;
        this.topic = topic;
        this.keys = keys;
        this.remaining = new AtomicInteger(operations);
        this.written = new AtomicIntegerArray(keys);
    }

    public static void main(String[] arguments) throws Exception {
        Workload workload = new Workload(
            arguments[0], arguments[1], Integer.parseInt(arguments[2]), Integer.parseInt(arguments[4]));
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
            int slot = number;
            Random random = new Random(Long.parseLong(arguments[5]) * 1000 + number);
            threads.add(new Thread(() -> workload.run(slot, random)));
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        workload.drain();
    }

    private static synchronized void tell(String line) {
        System.out.println(line);
    }

    private void run(int slot, Random random) {
        while (remaining.get() > 0) {
            try (Client client = new Client(slot, random)) {
                while (client.goesOn && remaining.getAndDecrement() > 0) {
                    client.operate();
                }
            } catch (Exception error) {
                System.err.println(slot + ": " + error);
            }
        }
    }

    /** One process: a producer, and a consumer of the keys that it chooses. */
    private class Client implements AutoCloseable {
        private final int process = nextProcess.incrementAndGet();
        private final Random random;
        private final KafkaProducer<byte[], String> producer;
        private final KafkaConsumer<byte[], String> consumer;
        private boolean goesOn = true;

        Client(int slot, Random random) {
            this.random = random;
            Properties settings = new Properties();
            settings.put("bootstrap.servers", address);
            settings.put("transactional.id", "process-" + slot);
            settings.put("transaction.timeout.ms", "10000");
            settings.put("request.timeout.ms", "3000");
            settings.put("delivery.timeout.ms", "8000");
            settings.put("max.block.ms", "10000");
            settings.put("linger.ms", "0");
            settings.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            producer = new KafkaProducer<>(settings);
            consumer = newConsumer(address, "process-" + slot + "-" + process);
            try {
                producer.initTransactions();
                assign();
            } catch (RuntimeException error) {
                close();
                throw error;
            }
        }

        void operate() {
            if (random.nextInt(32) == 0) {
                assign();
                return;
            }
            Map<TopicPartition, Long> before = positions();
            StringBuilder text = new StringBuilder();
            List<Sent> sent = new ArrayList<>();
            long begin = System.nanoTime();
            String type = "fail";
            boolean decided = false;
            try {
                producer.beginTransaction();
                boolean polled = false;
                List<Object> steps = new ArrayList<>();
                int count = 1 + random.nextInt(4);
                for (int step = 0; step < count; step++) {
                    if (random.nextBoolean()) {
                        Sent one = send();
                        if (one != null) {
                            sent.add(one);
                            steps.add(one);
                        }
                    } else {
                        polled = true;
                        steps.add(poll());
                    }
                }
                if (polled) {
                    producer.sendOffsetsToTransaction(offsets(), consumer.groupMetadata());
                }
                decided = true;
                producer.commitTransaction();
                type = "ok";
                for (Object step : steps) {
                    text.append(' ').append(step);
                }
            } catch (RuntimeException error) {
                System.err.println(process + ": " + error);
                text.setLength(0);
                for (Sent one : sent) {
                    text.append(' ').append(one);
                }
                type = undo(decided);
                before.forEach(consumer::seek);
            }
            tell(process + " " + type + " " + begin + " " + System.nanoTime() + text);
        }

        /** After an error, abort the transaction, or replace the client if the outcome of the commit is unknown. */
        private String undo(boolean decided) {
            if (decided) {
                goesOn = false;
                return "info";
            }
            try {
                producer.abortTransaction();
                return "fail";
            } catch (RuntimeException error) {
                // The next producer of the id or the timeout aborts the transaction, because no commit was requested.
                goesOn = false;
                return "fail";
            }
        }

        private Sent send() {
            int key = freeKey();
            if (key < 0) {
                return null;
            }
            int value = written.incrementAndGet(key);
            return new Sent(key, value, producer.send(new ProducerRecord<>(topic, key, null, Integer.toString(value))));
        }

        private int freeKey() {
            int first = 0;
            while (first < keys && written.get(first) >= WRITES_PER_KEY) {
                first++;
            }
            return first >= keys ? -1 : Math.min(keys - 1, first + random.nextInt(ACTIVE_KEYS));
        }

        private String poll() {
            StringBuilder text = new StringBuilder();
            int count = 0;
            for (ConsumerRecord<byte[], String> record : consumer.poll(POLL)) {
                text.append(' ').append(record.partition()).append(' ').append(record.value());
                text.append(' ').append(record.offset());
                count++;
            }
            return "p " + count + text;
        }

        private void assign() {
            int first = 0;
            while (first < keys - 1 && written.get(first) >= WRITES_PER_KEY) {
                first++;
            }
            Set<TopicPartition> chosen = new HashSet<>();
            for (int key = Math.max(0, first - 1); key < Math.min(keys, first + ACTIVE_KEYS); key++) {
                if (chosen.isEmpty() || random.nextInt(4) > 0) {
                    chosen.add(new TopicPartition(topic, key));
                }
            }
            long begin = System.nanoTime();
            Set<TopicPartition> known = new HashSet<>(consumer.assignment());
            consumer.assign(chosen);
            for (TopicPartition partition : chosen) {
                if (!known.contains(partition)) {
                    consumer.seek(partition, 0);
                }
            }
            StringBuilder text = new StringBuilder(" a " + chosen.size());
            chosen.forEach(partition -> text.append(' ').append(partition.partition()));
            tell(process + " ok " + begin + " " + System.nanoTime() + text);
        }

        private Map<TopicPartition, Long> positions() {
            Map<TopicPartition, Long> positions = new HashMap<>();
            consumer.assignment().forEach(partition -> positions.put(partition, consumer.position(partition)));
            return positions;
        }

        private Map<TopicPartition, OffsetAndMetadata> offsets() {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            positions().forEach((partition, offset) -> offsets.put(partition, new OffsetAndMetadata(offset)));
            return offsets;
        }

        @Override
        public void close() {
            producer.close(Duration.ZERO);
            consumer.close(Duration.ZERO);
        }
    }

    /** A record in flight. Its offset is known once it is acknowledged. */
    private record Sent(int key, int value, Future<RecordMetadata> answer) {
        @Override
        public String toString() {
            long offset = -1;
            if (answer.isDone()) {
                try {
                    offset = answer.get(0, TimeUnit.SECONDS).offset();
                } catch (Exception error) {
                    offset = -1;
                }
            }
            return "s " + key + " " + value + " " + offset;
        }
    }

    private static KafkaConsumer<byte[], String> newConsumer(String address, String group) {
        return newConsumer(address, group, "read_committed");
    }

    private static KafkaConsumer<byte[], String> newConsumer(String address, String group, String isolation) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group);
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        settings.put("fetch.max.wait.ms", "20");
        settings.put("request.timeout.ms", "3000");
        settings.put("default.api.timeout.ms", "10000");
        settings.put("max.poll.records", "200");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(settings);
    }

    private void drain() {
        try (KafkaConsumer<byte[], String> consumer = newConsumer(address, "drain")) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int key = 0; key < keys; key++) {
                partitions.add(new TopicPartition(topic, key));
            }
            // Include records after transactions that are not yet aborted by their timeout.
            Map<TopicPartition, Long> ends;
            try (KafkaConsumer<byte[], String> all = newConsumer(address, "drain", "read_uncommitted")) {
                ends = all.endOffsets(partitions, Duration.ofSeconds(60));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            int process = nextProcess.incrementAndGet();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
            while (System.nanoTime() < deadline
                && partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                long begin = System.nanoTime();
                StringBuilder text = new StringBuilder();
                int count = 0;
                for (ConsumerRecord<byte[], String> record : consumer.poll(Duration.ofMillis(200))) {
                    text.append(' ').append(record.partition()).append(' ').append(record.value());
                    text.append(' ').append(record.offset());
                    count++;
                }
                tell(process + " ok " + begin + " " + System.nanoTime() + " p " + count + text);
            }
        }
    }
}
