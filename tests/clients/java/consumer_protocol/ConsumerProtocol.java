import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Members with group.protocol=consumer (KIP-848). Arguments: bootstrap servers, and a prefix for names. Prints one
 * line of JSON per scenario, without anything that varies between runs, such as member IDs.
 */
public final class ConsumerProtocol {
    private static final int PARTITIONS = 6;
    private static final Duration STEP = Duration.ofMillis(50);
    private static final long PATIENCE_NS = 60_000_000_000L;

    /** A member that records the partitions that it gets and loses, and the records that it reads. */
    private static final class Member implements ConsumerRebalanceListener, AutoCloseable {
        final KafkaConsumer<String, String> consumer;
        final List<String> received = new ArrayList<>();
        int assigned = 0;
        int revoked = 0;
        int lost = 0;
        Throwable failure = null;
        boolean closed = false;

        Member(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned += partitions.size();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            revoked += partitions.size();
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            lost += partitions.size();
        }

        void poll() {
            try {
                for (ConsumerRecord<String, String> record : consumer.poll(STEP)) received.add(record.value());
            } catch (RuntimeException problem) {
                failure = problem;
            }
        }

        int held() {
            return consumer.assignment().size();
        }

        @Override
        public void close() {
            if (!closed) consumer.close();
            closed = true;
        }
    }

    private final String bootstrap;
    private final String run;
    private final Admin admin;

    private ConsumerProtocol(String bootstrap, String run) {
        this.bootstrap = bootstrap;
        this.run = run;
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        admin = Admin.create(settings);
    }

    public static void main(String[] arguments) throws Exception {
        ConsumerProtocol program = new ConsumerProtocol(arguments[0], arguments[1]);
        program.show("names", program.names());
        program.show("pattern", program.pattern());
        program.show("static members", program.staticMembers());
        program.show("transactions", program.transactions());
        program.show("assignors", program.assignors());
        program.show("poll interval", program.pollInterval());
        program.show("both protocols", program.bothProtocols());
        program.show("admin", program.administration());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private void show(String scenario, Map<String, Object> observed) {
        System.out.println(Json.write(Collections.singletonMap(scenario, observed)));
    }

    /** Two members share a topic, commit in both ways, unsubscribe, return and leave. */
    private Map<String, Object> names() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-names";
        String topic = topic("names", PARTITIONS);
        produce(topic, 60);
        try (Member first = member(group); Member second = member(group)) {
            first.consumer.subscribe(Collections.singleton(topic), first);
            await("all records", () -> first.received.size() == 60, first);
            first.consumer.commitSync();
            seen.put("committed", committed(group));
            second.consumer.subscribe(Collections.singleton(topic), second);
            await("two shares", () -> first.held() == 3 && second.held() == 3, first, second);
            seen.put("revoked", Arrays.asList(first.revoked, second.revoked));
            produce(topic, 12);
            await("new records", () -> first.received.size() + second.received.size() == 72, first, second);
            seen.put("second received", second.received.size());
            AtomicReference<String> outcome = new AtomicReference<>();
            second.consumer.commitAsync((offsets, problem) ->
                outcome.set(problem == null ? "committed " + offsets.size() : problem.toString()));
            await("commitAsync", () -> outcome.get() != null, first, second);
            seen.put("commitAsync", outcome.get());
            seen.put("committed by second", committed(group));
            second.consumer.unsubscribe();
            seen.put("unsubscribed", Arrays.asList(second.held(), second.revoked, second.lost));
            await("one share", () -> first.held() == 6, first);
            second.consumer.subscribe(Collections.singleton(topic), second);
            await("shares again", () -> first.held() == 3 && second.held() == 3, first, second);
            admin.createPartitions(Collections.singletonMap(topic, NewPartitions.increaseTo(8))).all().get();
            await("new partitions", () -> first.held() == 4 && second.held() == 4, first, second);
            first.consumer.close(CloseOptions.timeout(Duration.ofSeconds(10)));
            first.closed = true;
            await("the last member", () -> second.held() == 8, second);
            seen.put("state", described(group));
        }
        seen.put("after", described(group));
        return seen;
    }

    /** A member with a pattern gets topics that exist and topics that are created later. */
    private Map<String, Object> pattern() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-pattern";
        topic("pattern-a", 2);
        topic("pattern-b", 1);
        topic("other-pattern-c", 1);
        try (Member member = member(group); Member broken = member(run + "-broken")) {
            member.consumer.subscribe(new SubscriptionPattern(run + "-pattern-.*"), member);
            await("both topics", () -> member.held() == 3, member);
            seen.put("topics", topics(member));
            topic("pattern-d", 3);
            await("a new topic", () -> member.held() == 6, member);
            seen.put("more topics", topics(member));
            admin.deleteTopics(Collections.singleton(run + "-pattern-a")).all().get();
            await("a deleted topic", () -> member.held() == 4, member);
            seen.put("fewer topics", topics(member));
            member.consumer.subscribe(new SubscriptionPattern(run + "-pattern-b|x"), member);
            await("another pattern", () -> member.held() == 1, member);
            member.consumer.unsubscribe();
            member.consumer.subscribe(Collections.singleton(run + "-pattern-d"), member);
            await("a name", () -> member.held() == 3, member);
            broken.consumer.subscribe(new SubscriptionPattern("(" + run));
            await("a refused pattern", () -> broken.failure != null, broken);
            seen.put("refused", kind(broken.failure));
            broken.failure = null;
            broken.consumer.unsubscribe();
        }
        return seen;
    }

    /** A static member returns to its partitions; its instance ID cannot be used twice at once. */
    private Map<String, Object> staticMembers() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-static";
        String topic = topic("static", PARTITIONS);
        try (Member first = member(group, "group.instance.id", "one")) {
            Member second = member(group, "group.instance.id", "two");
            first.consumer.subscribe(Collections.singleton(topic), first);
            second.consumer.subscribe(Collections.singleton(topic), second);
            await("two shares", () -> first.held() == 3 && second.held() == 3, first, second);
            Collection<TopicPartition> held = second.consumer.assignment();
            try (Member intruder = member(group, "group.instance.id", "two")) {
                intruder.consumer.subscribe(Collections.singleton(topic), intruder);
                await("a refused member", () -> intruder.failure != null, intruder, first, second);
                seen.put("refused", kind(intruder.failure));
            }
            second.close();
            seen.put("left temporarily", described(group));
            int before = first.assigned;
            try (Member successor = member(group, "group.instance.id", "two")) {
                successor.consumer.subscribe(Collections.singleton(topic), successor);
                await("the old share", () -> successor.held() == 3, first, successor);
                seen.put("same share", held.equals(successor.consumer.assignment()));
                seen.put("others assigned", first.assigned - before);
                successor.consumer.close(
                    CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
                successor.closed = true;
            }
            await("the other share", () -> first.held() == 6, first);
            seen.put("left", described(group));
        }
        try (Member stays = member(group)) {
            stays.consumer.subscribe(Collections.singleton(topic), stays);
            // The static member "one" keeps its partitions during its session.
            seen.put("static member absent", described(group));
            RemoveMembersFromConsumerGroupOptions all = new RemoveMembersFromConsumerGroupOptions();
            seen.put("removal", outcome(admin.removeMembersFromConsumerGroup(group, all).all()));
            await("its partitions", () -> stays.held() == 6 || stays.failure != null, stays);
            seen.put("after removal", kind(stays.failure));
        }
        return seen;
    }

    /** Offsets of a member in transactions: committed, aborted, and of a former epoch. */
    private Map<String, Object> transactions() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-transactions";
        String topic = topic("transactions", 2);
        String target = topic("target", 1);
        produce(topic, 20);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", run + "-id");
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
             Member member = member(group)) {
            producer.initTransactions();
            member.consumer.subscribe(Collections.singleton(topic), member);
            await("records", () -> member.received.size() == 20, member);
            ConsumerGroupMetadata metadata = member.consumer.groupMetadata();
            for (boolean commit : new boolean[] {false, true, false, true}) {
                long offset = seen.size() < 2 ? 5 : 7;
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(target, "value"));
                producer.sendOffsetsToTransaction(offsets(topic, 2, offset), metadata);
                if (commit) producer.commitTransaction();
                else producer.abortTransaction();
                seen.put("transaction " + seen.size(), stable(member, offsets(topic, 2, 0)));
            }
            Member second = member(group);
            second.consumer.subscribe(Collections.singleton(topic), second);
            await("two shares", () -> member.held() == 1 && second.held() == 1, member, second);
            producer.beginTransaction();
            seen.put("former epoch", attempt(() ->
                producer.sendOffsetsToTransaction(offsets(topic, 2, 9), metadata)));
            producer.abortTransaction();
            producer.beginTransaction();
            ConsumerGroupMetadata current = member.consumer.groupMetadata();
            producer.sendOffsetsToTransaction(offsets(topic, 2, 9), current);
            producer.commitTransaction();
            seen.put("current epoch", stable(member, offsets(topic, 2, 0)));
            ConsumerGroupMetadata gone = second.consumer.groupMetadata();
            second.close();
            producer.beginTransaction();
            seen.put("former member", attempt(() ->
                producer.sendOffsetsToTransaction(offsets(topic, 2, 9), gone)));
            producer.abortTransaction();
            producer.beginTransaction();
            seen.put("other group", attempt(() ->
                producer.sendOffsetsToTransaction(offsets(topic, 2, 9), new ConsumerGroupMetadata(group + "-new"))));
            producer.commitTransaction();
            Map<String, Object> expected = new TreeMap<>();
            for (int number = 0; number < 2; number++) expected.put("RUN-transactions-" + number, 9L);
            long end = System.nanoTime() + PATIENCE_NS;
            while (!committed(group + "-new").equals(expected)) {
                if (System.nanoTime() > end) throw new IllegalStateException("the offsets of a new group");
            }
        }
        return seen;
    }

    /** Assignors by name. */
    private Map<String, Object> assignors() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String[] topics = {topic("assignors-a", 3), topic("assignors-b", 3)};
        String group = run + "-assignors";
        try (Member first = member(group, "group.remote.assignor", "range", "group.instance.id", "1");
             Member second = member(group, "group.remote.assignor", "range", "group.instance.id", "2");
             Member broken = member(run + "-no-assignor", "group.remote.assignor", "none")) {
            first.consumer.subscribe(Arrays.asList(topics), first);
            second.consumer.subscribe(Arrays.asList(topics), second);
            await("ranges", () -> first.held() == 4 && second.held() == 2, first, second);
            seen.put("second", new TreeSet<>(numbers(second)));
            broken.consumer.subscribe(Arrays.asList(topics), broken);
            await("a refused assignor", () -> broken.failure != null, broken);
            seen.put("refused", kind(broken.failure));
            broken.consumer.unsubscribe();
        }
        return seen;
    }

    /** A member that does not poll leaves the group, and returns with its next poll. */
    private Map<String, Object> pollInterval() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-interval";
        String topic = topic("interval", PARTITIONS);
        try (Member first = member(group); Member slow = member(group, "max.poll.interval.ms", "3000")) {
            first.consumer.subscribe(Collections.singleton(topic), first);
            slow.consumer.subscribe(Collections.singleton(topic), slow);
            await("two shares", () -> first.held() == 3 && slow.held() == 3, first, slow);
            await("the share of the slow member", () -> first.held() == 6, first);
            seen.put("commit", attempt(() -> slow.consumer.commitSync(offsets(topic, 1, 0))));
            await("its return", () -> first.held() == 3 && slow.held() == 3, first, slow);
            seen.put("lost", slow.lost);
        }
        return seen;
    }

    /** Members of both protocols in one group, which is converted twice. */
    private Map<String, Object> bothProtocols() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-both";
        String topic = topic("both", PARTITIONS);
        produce(topic, 60);
        try (Member classic = member(group, "group.protocol", "classic", "session.timeout.ms", "10000",
                 "heartbeat.interval.ms", "500")) {
            classic.consumer.subscribe(Collections.singleton(topic), classic);
            await("records", () -> classic.received.size() == 60, classic);
            classic.consumer.commitSync();
            seen.put("before", described(group));
            try (Member modern = member(group)) {
                modern.consumer.subscribe(Collections.singleton(topic), modern);
                await("two shares", () -> classic.held() == 3 && modern.held() == 3, classic, modern);
                seen.put("both", described(group));
                produce(topic, 12);
                await("new records", () -> classic.received.size() + modern.received.size() == 72, classic, modern);
                classic.consumer.commitSync();
                modern.consumer.commitSync();
                seen.put("committed", committed(group));
            }
            await("the whole topic", () -> classic.held() == 6, classic);
            seen.put("after", described(group));
        }
        return seen;
    }

    /** Responses to administrators while a group has members. */
    private Map<String, Object> administration() throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        String group = run + "-admin";
        String topic = topic("admin", 2);
        produce(topic, 10);
        try (Member member = member(group)) {
            member.consumer.subscribe(Collections.singleton(topic), member);
            await("records", () -> member.received.size() == 10, member);
            member.consumer.commitSync();
            TreeSet<String> listed = new TreeSet<>();
            admin.listGroups(ListGroupsOptions.forConsumerGroups().withTypes(Collections.singleton(GroupType.CONSUMER)))
                .all().get().forEach(found -> {
                    if (found.groupId().equals(group)) {
                        listed.add(found.type() + " " + found.protocol() + " " + found.groupState());
                    }
                });
            seen.put("listed", listed);
            seen.put("described", described(group));
            seen.put("alter offsets", outcome(
                admin.alterConsumerGroupOffsets(group, offsets(topic, 2, 0)).all()));
            seen.put("delete offsets", outcome(admin.deleteConsumerGroupOffsets(
                group, Collections.singleton(new TopicPartition(topic, 0))).all()));
            seen.put("delete", outcome(admin.deleteConsumerGroups(Collections.singleton(group)).all()));
            String id = member.consumer.groupMetadata().memberId();
            seen.put("member", Arrays.asList(id.length(), member.consumer.groupMetadata().generationId()));
        }
        seen.put("alter offsets of empty", outcome(
            admin.alterConsumerGroupOffsets(group, offsets(topic, 2, 1)).all()));
        seen.put("committed", committed(group));
        seen.put("delete empty", outcome(admin.deleteConsumerGroups(Collections.singleton(group)).all()));
        seen.put("describe deleted", outcome(
            admin.describeConsumerGroups(Collections.singleton(group)).all()));
        return seen;
    }

    private Member member(String group, String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("group.protocol", "consumer");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", "1000");
        for (int at = 0; at < more.length; at += 2) settings.put(more[at], more[at + 1]);
        return new Member(new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer()));
    }

    private String topic(String name, int partitions) throws Exception {
        String full = run + "-" + name;
        admin.createTopics(Collections.singleton(new NewTopic(full, partitions, (short) 1))).all().get();
        return full;
    }

    private void produce(String topic, int count) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            int partitions = producer.partitionsFor(topic).size();
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, number % partitions, null, "value-" + number));
            }
        }
    }

    private static void await(String what, BooleanSupplier done, Member... members) {
        long end = System.nanoTime() + PATIENCE_NS;
        while (!done.getAsBoolean()) {
            if (System.nanoTime() > end) {
                StringBuilder shown = new StringBuilder(what);
                for (Member member : members) {
                    shown.append(" ").append(member.held()).append("/").append(member.received.size());
                    shown.append("/").append(member.failure);
                }
                throw new IllegalStateException(shown.toString());
            }
            for (Member member : members) member.poll();
        }
        for (Member member : members) {
            if (member.failure != null && !what.startsWith("a refused")) {
                throw new IllegalStateException(what, member.failure);
            }
        }
    }

    private Map<String, Object> committed(String group) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
            (partition, hit) -> found.put(shortened(partition.toString()), hit.offset()));
        return found;
    }

    /** The committed offsets as a member sees them: it waits until ended transactions are complete. */
    private Map<String, Object> stable(Member member, Map<TopicPartition, OffsetAndMetadata> partitions) {
        Map<String, Object> found = new TreeMap<>();
        member.consumer.committed(partitions.keySet()).forEach(
            (partition, hit) -> found.put(shortened(partition.toString()), hit == null ? null : hit.offset()));
        return found;
    }

    private Map<String, Object> described(String group) throws Exception {
        ConsumerGroupDescription found =
            admin.describeConsumerGroups(Collections.singleton(group)).all().get().get(group);
        List<String> members = new ArrayList<>();
        found.members().forEach(member -> members.add(
            member.groupInstanceId().orElse("-") + " " + member.assignment().topicPartitions().size()
                + " " + member.targetAssignment().map(target -> target.topicPartitions().size())
                + " " + progress(found.groupEpoch(), member.memberEpoch())
                + " upgraded " + member.upgraded()));
        Collections.sort(members);
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("state", found.groupState().toString());
        shown.put("type", found.type().toString());
        shown.put("assignor", found.partitionAssignor());
        shown.put("members", members);
        return shown;
    }

    private static String progress(Optional<Integer> group, Optional<Integer> member) {
        if (member.isEmpty()) return "without an epoch";
        if (member.get() < 0) return "at epoch " + member.get();
        return member.equals(group) ? "at the group epoch" : "behind the group epoch";
    }

    private TreeSet<String> topics(Member member) {
        TreeSet<String> found = new TreeSet<>();
        for (TopicPartition partition : member.consumer.assignment()) found.add(shortened(partition.topic()));
        return found;
    }

    private TreeSet<String> numbers(Member member) {
        TreeSet<String> found = new TreeSet<>();
        for (TopicPartition partition : member.consumer.assignment()) found.add(shortened(partition.toString()));
        return found;
    }

    private String shortened(String name) {
        return name.replace(run, "RUN");
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(String topic, int partitions, long offset) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (int number = 0; number < partitions; number++) {
            found.put(new TopicPartition(topic, number), new OffsetAndMetadata(offset));
        }
        return found;
    }

    private static String attempt(Runnable action) {
        try {
            action.run();
            return "done";
        } catch (RuntimeException problem) {
            return kind(problem);
        }
    }

    private static String outcome(KafkaFuture<?> future) throws InterruptedException {
        try {
            future.get();
            return "done";
        } catch (ExecutionException problem) {
            return kind(problem.getCause());
        }
    }

    private static String kind(Throwable problem) {
        if (problem == null) return "none";
        String cause = problem.getCause() == null ? "" : " by " + problem.getCause().getClass().getSimpleName();
        return problem.getClass().getSimpleName() + cause;
    }
}
