import io.smallrye.mutiny.Uni;
import io.smallrye.reactive.messaging.kafka.KafkaRecord;
import io.smallrye.reactive.messaging.kafka.transactions.KafkaTransactions;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.eclipse.microprofile.reactive.messaging.Message;

/** Copies the records of each poll in a transaction, which also commits their offsets. */
@ApplicationScoped
public class Copies {
    @Inject
    @Channel("counts")
    KafkaTransactions<String> transactions;

    @Incoming("lines")
    Uni<Void> copy(Message<ConsumerRecords<String, String>> records) {
        return transactions.withTransactionAndAck(records, emitter -> {
            for (ConsumerRecord<String, String> record : records.getPayload()) {
                emitter.send(KafkaRecord.of(record.key(), record.value()));
            }
            return Uni.createFrom().voidItem();
        });
    }
}
