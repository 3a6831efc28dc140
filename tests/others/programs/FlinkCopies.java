import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies numbers from a topic to another with Flink's exactly-once sink. It fails once, and resumes from a checkpoint.
 *
 * Arguments: bootstrap servers, input topic, output topic, and the naming strategy of transactions: INCREMENTING or
 * POOLING.
 */
public final class FlinkCopies {
    private FlinkCopies() {}

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "1 s");
        settings.setString("execution.checkpointing.interval", "1 s");
        settings.setString("rest.port", "0");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(2);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(arguments[0])
                .setTopics(arguments[1])
                .setGroupId(arguments[1])
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(arguments[0])
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(arguments[2])
                        .setKeySerializationSchema(
                                (String number) -> number.substring(number.length() - 1).getBytes(StandardCharsets.UTF_8))
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(arguments[1])
                .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(arguments[3]))
                .setProperty("transaction.timeout.ms", "600000")
                .build();
        environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "lines")
                .map(new FailsOnce())
                .sinkTo(sink);
        environment.execute();
    }

    /** Fails at one number. */
    static final class FailsOnce implements MapFunction<String, String> {
        private static final AtomicBoolean failed = new AtomicBoolean();

        @Override
        public String map(String number) {
            if (number.equals("700") && failed.compareAndSet(false, true)) {
                throw new IllegalStateException("the only failure");
            }
            return number;
        }
    }
}
