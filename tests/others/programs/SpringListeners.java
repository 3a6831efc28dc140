import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.context.annotation.Profile;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.ShareKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.requestreply.ReplyingKafkaTemplate;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Listeners of Spring Kafka that read a topic of numbers and write a record for each to another topic.
 *
 * Arguments: bootstrap servers, input topic, output topic, and the kind of listener: transactional, batch, retry,
 * reply or share. The kind reply also sends 300 requests, and ends after their replies.
 */
public final class SpringListeners {
    private static final int REQUESTS = 300;

    private SpringListeners() {}

    public static void main(String[] arguments) throws Exception {
        System.setProperty("address", arguments[0]);
        System.setProperty("lines", arguments[1]);
        System.setProperty("counts", arguments[2]);
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        context.getEnvironment().setActiveProfiles(arguments[3]);
        context.register(Common.class, Transactional.class, Batch.class, Retry.class, Reply.class, Share.class);
        context.registerShutdownHook();
        context.refresh();
        System.out.println("started");
        if (arguments[3].equals("reply")) {
            request(context, arguments[1]);
            context.close();
            System.exit(0);
        }
        Thread.currentThread().join();
    }

    @SuppressWarnings("unchecked")
    private static void request(AnnotationConfigApplicationContext context, String topic) throws Exception {
        ReplyingKafkaTemplate<String, String, String> requests = context.getBean(ReplyingKafkaTemplate.class);
        requests.waitForAssignment(Duration.ofSeconds(120));
        for (int number = 0; number < REQUESTS; number++) {
            String reply = requests.sendAndReceive(new ProducerRecord<>(topic, "" + number), Duration.ofSeconds(60))
                    .get(60, TimeUnit.SECONDS)
                    .value();
            if (!reply.equals("reply to " + number)) {
                throw new IllegalStateException(number + ": " + reply);
            }
        }
        System.out.println("all replies");
    }

    /** Clients, and the containers of listeners. */
    @Configuration
    @EnableKafka
    static class Common {
        final String address = System.getProperty("address");

        @Bean
        KafkaAdmin admin() {
            return new KafkaAdmin(Map.of("bootstrap.servers", address));
        }

        @Bean
        ConsumerFactory<String, String> consumers() {
            Map<String, Object> settings = Map.of(
                    "bootstrap.servers", address,
                    "auto.offset.reset", "earliest",
                    "isolation.level", "read_committed",
                    "max.poll.records", 50);
            return new DefaultKafkaConsumerFactory<>(settings, new StringDeserializer(), new StringDeserializer());
        }

        @Bean
        @Profile("!transactional")
        ProducerFactory<String, String> producers() {
            return new DefaultKafkaProducerFactory<>(
                    Map.of("bootstrap.servers", address), new StringSerializer(), new StringSerializer());
        }

        @Bean
        @Profile("transactional")
        ProducerFactory<String, String> transactionalProducers() {
            DefaultKafkaProducerFactory<String, String> found = new DefaultKafkaProducerFactory<>(
                    Map.of("bootstrap.servers", address), new StringSerializer(), new StringSerializer());
            found.setTransactionIdPrefix(System.getProperty("lines"));
            return found;
        }

        @Bean
        @Primary
        KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
            return new KafkaTemplate<>(producers);
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, String> kafkaListenerContainerFactory(
                ConsumerFactory<String, String> consumers, KafkaTemplate<String, String> template) {
            ConcurrentKafkaListenerContainerFactory<String, String> found =
                    new ConcurrentKafkaListenerContainerFactory<>();
            found.setConsumerFactory(consumers);
            found.setReplyTemplate(template);
            if (template.isTransactional()) {
                found.getContainerProperties()
                        .setKafkaAwareTransactionManager(
                                new KafkaTransactionManager<>(template.getProducerFactory()));
            }
            return found;
        }
    }

    /** Reads and writes each record in a transaction. */
    @Configuration
    @Profile("transactional")
    static class Transactional {
        private final KafkaTemplate<String, String> template;

        Transactional(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @KafkaListener(topics = "${lines}", groupId = "${lines}", concurrency = "2")
        void copy(ConsumerRecord<String, String> record) {
            template.send(System.getProperty("counts"), record.key(), record.value());
        }
    }

    /** Reads all records of a poll at once. */
    @Configuration
    @Profile("batch")
    static class Batch {
        private final KafkaTemplate<String, String> template;

        Batch(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @KafkaListener(topics = "${lines}", groupId = "${lines}", batch = "true", concurrency = "2")
        void copy(List<ConsumerRecord<String, String>> records) throws Exception {
            for (ConsumerRecord<String, String> record : records) {
                template.send(System.getProperty("counts"), record.key(), record.value()).get(60, TimeUnit.SECONDS);
            }
        }
    }

    /** Fails for each number that ends with 7, which goes through the retry topics to the dead letter topic. */
    @Configuration
    @Profile("retry")
    @EnableKafkaRetryTopic
    static class Retry {
        private final KafkaTemplate<String, String> template;

        Retry(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @Bean
        TaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 200), numPartitions = "2")
        @KafkaListener(topics = "${lines}", groupId = "${lines}")
        void copy(ConsumerRecord<String, String> record) {
            if (record.value().endsWith("7")) {
                throw new IllegalStateException(record.value());
            }
            template.send(System.getProperty("counts"), record.key(), record.value() + ":0");
        }

        @DltHandler
        void dead(ConsumerRecord<String, String> record) {
            template.send(System.getProperty("counts"), record.key(), record.value() + ":1");
        }
    }

    /** Replies to each request. */
    @Configuration
    @Profile("reply")
    static class Reply {
        @Bean
        ReplyingKafkaTemplate<String, String, String> requests(
                ProducerFactory<String, String> producers,
                ConcurrentKafkaListenerContainerFactory<String, String> factory) {
            ConcurrentMessageListenerContainer<String, String> replies =
                    factory.createContainer(System.getProperty("counts"));
            replies.getContainerProperties().setGroupId(System.getProperty("counts"));
            return new ReplyingKafkaTemplate<>(producers, replies);
        }

        @KafkaListener(topics = "${lines}", groupId = "${lines}")
        @SendTo
        String reply(String number) {
            return "reply to " + number;
        }
    }

    /** Reads records as a member of a share group. */
    @Configuration
    @Profile("share")
    static class Share {
        private final KafkaTemplate<String, String> template;

        Share(KafkaTemplate<String, String> template) {
            this.template = template;
        }

        @Bean
        ShareKafkaListenerContainerFactory<String, String> shares() {
            Map<String, Object> settings = Map.of("bootstrap.servers", System.getProperty("address"));
            return new ShareKafkaListenerContainerFactory<>(new DefaultShareConsumerFactory<String, String>(
                    settings, new StringDeserializer(), new StringDeserializer(), true));
        }

        @KafkaListener(topics = "${lines}", groupId = "${lines}-share", containerFactory = "shares")
        void copy(ConsumerRecord<String, String> record) throws Exception {
            template.send(System.getProperty("counts"), record.key(), record.value()).get(60, TimeUnit.SECONDS);
        }
    }
}
