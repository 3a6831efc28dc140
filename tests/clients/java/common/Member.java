import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A group member that polls, commits and closes its consumer in its own thread. */
final class Member {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Thread thread;
    private final BlockingQueue<FutureTask<Void>> jobs = new LinkedBlockingQueue<>();
    private final List<Object> received = new ArrayList<>();
    private final List<Object> assignment = new ArrayList<>();
    private String failure = null;
    private volatile boolean stopped = false;

    Member(KafkaConsumer<byte[], byte[]> consumer, List<String> topics) {
        this.consumer = consumer;
        consumer.subscribe(topics);
        thread = new Thread(this::run);
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        while (!stopped) {
            try {
                Iterable<ConsumerRecord<byte[], byte[]>> polled = Compat.poll(consumer, 50);
                synchronized (this) {
                    assignment.clear();
                    for (TopicPartition part : consumer.assignment()) {
                        assignment.add(Arrays.<Object>asList(part.topic(), part.partition()));
                    }
                    for (ConsumerRecord<byte[], byte[]> record : polled) {
                        received.add(Arrays.<Object>asList(record.topic(), record.partition(), record.offset()));
                    }
                }
            } catch (RuntimeException problem) {
                synchronized (this) {
                    failure = problem.toString();
                }
            }
            for (FutureTask<Void> job = jobs.poll(); job != null; job = jobs.poll()) job.run();
        }
        consumer.close();
    }

    synchronized Map<String, Object> state() {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("assignment", new ArrayList<>(assignment));
        shown.put("received", new ArrayList<>(received));
        shown.put("failure", failure);
        return shown;
    }

    Map<String, Object> commit() throws Exception {
        FutureTask<Void> job = new FutureTask<>(consumer::commitSync, null);
        jobs.add(job);
        job.get(30, TimeUnit.SECONDS);
        return new LinkedHashMap<>();
    }

    Map<String, Object> leave() throws Exception {
        stopped = true;
        thread.join(30_000);
        return new LinkedHashMap<>();
    }
}
