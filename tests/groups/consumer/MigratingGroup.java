import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The members of one group, and a producer that writes to all partitions of their topic at a steady rate. All are in
 * one process, so that the times of their events can be compared.
 *
 * Arguments: bootstrap servers, topic, partitions, members, pause between two records of a partition in ms, heartbeat
 * interval and session timeout of classic members in ms, "static" or "dynamic", and the file for the events. migrating_group.py describes
 * the commands on standard input and the events.
 */
public final class MigratingGroup {
    private static final Duration POLL = Duration.ofMillis(100);

    private final String bootstrapServers;
    private final String topic;
    private final int partitions;
    private final int size;
    private final long pauseMs;
    private final String heartbeatMs;
    private final String sessionMs;
    private final boolean isStatic;
    private final PrintWriter events;
    private final Map<Integer, Member> members = new ConcurrentHashMap<>();
    private final AtomicLongArray committed;
    private final AtomicLongArray ends;

    private MigratingGroup(String[] arguments) throws IOException {
        bootstrapServers = arguments[0];
        topic = arguments[1];
        partitions = Integer.parseInt(arguments[2]);
        size = Integer.parseInt(arguments[3]);
        pauseMs = Long.parseLong(arguments[4]);
        heartbeatMs = arguments[5];
        sessionMs = arguments[6];
        isStatic = arguments[7].equals("static");
        events = new PrintWriter(new BufferedWriter(new FileWriter(arguments[8])));
        committed = new AtomicLongArray(partitions);
        ends = new AtomicLongArray(partitions);
    }

    public static void main(String[] arguments) throws Exception {
        new MigratingGroup(arguments).run();
        // A consumer that could not be closed does not keep the process running.
        System.exit(0);
    }

    private void run() throws Exception {
        Load load = new Load();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            String answer = "ok";
            switch (words[0]) {
                case "produce": load.start(); break;
                case "start": start(Integer.parseInt(words[1]), words[2]); break;
                case "stop": members.remove(Integer.parseInt(words[1])).end(); break;
                case "settle": answer = waitFor(Long.parseLong(words[1]), this::unsettled); break;
                case "mark": event("mark " + words[1]); break;
                case "drain":
                    load.end();
                    answer = waitFor(Long.parseLong(words[1]), this::uncommitted);
                    break;
                case "finish":
                    for (Member member : members.values()) member.end();
                    synchronized (events) {
                        events.close();
                    }
                    break;
                default: answer = "unknown command " + line;
            }
            System.out.println(answer);
        }
    }

    private void start(int number, String protocol) {
        Member member = new Member(number, protocol);
        members.put(number, member);
        member.start();
    }

    private void event(String text) {
        synchronized (events) {
            events.println(System.nanoTime() / 1000 + " " + text);
        }
    }

    private interface Lacking {
        /** Return what is still lacking, or null. */
        String find();
    }

    private static String waitFor(long timeoutMs, Lacking lacking) throws InterruptedException {
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        while (true) {
            String found = lacking.find();
            if (found == null) return "ok";
            if (System.nanoTime() > deadline) return found;
            Thread.sleep(5);
        }
    }

    /** Each member has the same number of partitions, and each partition has one owner. */
    private String unsettled() {
        Set<Integer> owned = new HashSet<>();
        boolean balanced = true;
        int total = 0;
        Map<Integer, Set<Integer>> shown = new TreeMap<>();
        for (Member member : members.values()) {
            Set<Integer> part = member.assigned;
            shown.put(member.number, part);
            owned.addAll(part);
            total += part.size();
            balanced &= part.size() == partitions / size;
        }
        boolean settled = balanced && total == partitions && owned.size() == partitions;
        return settled ? null : "not balanced: " + shown;
    }

    private String uncommitted() {
        StringBuilder missing = new StringBuilder();
        for (int partition = 0; partition < partitions; partition++) {
            if (committed.get(partition) < ends.get(partition)) {
                missing.append(" " + partition + ":" + committed.get(partition) + "<" + ends.get(partition));
            }
        }
        return missing.length() == 0 ? null : "not committed:" + missing;
    }

    /** Writes one record to each partition every `pauseMs`. */
    private final class Load extends Thread {
        private volatile boolean ended = false;

        @Override
        public void run() {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", bootstrapServers);
            settings.put("acks", "all");
            try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                long next = System.nanoTime();
                for (long number = 0; !ended; number++) {
                    for (int partition = 0; partition < partitions; partition++) send(producer, partition, number);
                    next += pauseMs * 1_000_000;
                    long waitMs = (next - System.nanoTime()) / 1_000_000;
                    if (waitMs > 0) Thread.sleep(waitMs);
                }
            } catch (InterruptedException unexpected) {
                event("failed producer " + unexpected);
            }
        }

        private void send(KafkaProducer<byte[], byte[]> producer, int partition, long number) {
            byte[] value = Long.toString(number).getBytes();
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, failure) -> {
                if (failure != null) event("failed producer " + failure);
                else {
                    event("stored " + partition + " " + number + " " + metadata.offset());
                    ends.accumulateAndGet(partition, metadata.offset() + 1, Math::max);
                }
            });
        }

        void end() throws InterruptedException {
            ended = true;
            join();
        }
    }

    /** A member that commits after each poll. A rejected commit is repeated while it has the partitions. */
    private final class Member extends Thread implements ConsumerRebalanceListener {
        private final int number;
        private final String protocol;
        private volatile boolean ended = false;
        volatile Set<Integer> assigned = Collections.emptySet();
        private final Map<TopicPartition, OffsetAndMetadata> uncommitted = new HashMap<>();

        Member(int number, String protocol) {
            super("member " + number);
            this.number = number;
            this.protocol = protocol;
            setDaemon(true);
        }

        private Properties settings() {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", bootstrapServers);
            settings.put("group.id", "migrating");
            settings.put("client.id", "member-" + number + "-" + protocol);
            settings.put("group.protocol", protocol);
            settings.put("enable.auto.commit", "false");
            settings.put("auto.offset.reset", "earliest");
            if (isStatic) settings.put("group.instance.id", "instance-" + number);
            if (protocol.equals("classic")) {
                settings.put("heartbeat.interval.ms", heartbeatMs);
                settings.put("session.timeout.ms", sessionMs);
                settings.put(
                    "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
            }
            return settings;
        }

        @Override
        public void run() {
            event("start " + number + " " + protocol);
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(settings(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topic), this);
                while (!ended) pollAndCommit(consumer);
            } catch (RuntimeException problem) {
                event("failed member-" + number + " " + problem);
                problem.printStackTrace();
            }
            event("end " + number);
        }

        private void pollAndCommit(KafkaConsumer<byte[], byte[]> consumer) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            for (TopicPartition partition : records.partitions()) {
                StringBuilder read = new StringBuilder("read " + number + " " + partition.partition());
                for (ConsumerRecord<byte[], byte[]> record : records.records(partition)) {
                    read.append(" " + record.offset() + ":" + new String(record.value()));
                }
                event(read.toString());
            }
            Set<Integer> current = new HashSet<>();
            for (TopicPartition partition : consumer.assignment()) current.add(partition.partition());
            assigned = current;
            uncommitted.putAll(records.nextOffsets());
            if (uncommitted.isEmpty()) return;
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(uncommitted);
            try {
                consumer.commitSync(offsets);
            } catch (CommitFailedException | RebalanceInProgressException rejected) {
                event("rejected " + number + " " + rejected.getClass().getSimpleName());
                return;
            }
            uncommitted.clear();
            StringBuilder stored = new StringBuilder("committed " + number);
            offsets.forEach((partition, offset) -> {
                stored.append(" " + partition.partition() + ":" + offset.offset());
                committed.accumulateAndGet(partition.partition(), offset.offset(), Math::max);
            });
            event(stored.toString());
        }

        void end() throws InterruptedException {
            ended = true;
            join(60_000);
            if (isAlive()) event("failed member-" + number + " did not close");
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            log("assigned", added);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            uncommitted.keySet().removeAll(revoked);
            log("revoked", revoked);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> lost) {
            uncommitted.keySet().removeAll(lost);
            log("lost", lost);
        }

        private void log(String what, Collection<TopicPartition> concerned) {
            StringBuilder text = new StringBuilder(what + " " + number);
            for (TopicPartition partition : concerned) text.append(" " + partition.partition());
            event(text.toString());
        }
    }
}
