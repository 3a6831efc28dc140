import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.net.InetAddress;
import java.util.function.Supplier;
import kafka.server.ClientQuotaManager;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.ControllerMutationQuota;
import kafka.server.ControllerMutationQuotaManager;
import kafka.server.QuotaType;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import scala.Option;

/** Kafka's own quota managers with a manual clock. The response to each request is one int. */
public class QuotaOracle {
    static final class ToldTime implements Time {
        long nowMs = 0;

        @Override public long milliseconds() { return nowMs; }
        @Override public long hiResClockMs() { return nowMs; }
        @Override public long nanoseconds() { return nowMs * 1_000_000; }
        @Override public void sleep(long ms) { nowMs += ms; }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        ToldTime time = new ToldTime();
        ClientQuotaManager manager = null;
        Metrics metrics = null;
        while (true) {
            int question;
            try {
                question = in.readByte();
            } catch (EOFException end) {
                System.exit(0);
                return;
            }
            int answer = 0;
            if (question == 'n') {
                int kind = in.readByte();
                ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(in.readInt(), in.readInt());
                if (manager != null) {
                    manager.initiateShutdown();
                    metrics.close();
                }
                metrics = new Metrics(time);
                if (kind == 'p')
                    manager = new ClientQuotaManager(
                        config, metrics, QuotaType.Produce$.MODULE$, time, "", Option.empty());
                else if (kind == 'r')
                    manager = new ClientRequestQuotaManager(config, metrics, time, "", Option.empty());
                else
                    manager = new ControllerMutationQuotaManager(config, metrics, time, "", Option.empty());
            } else {
                String user = in.readUTF();
                String clientId = in.readUTF();
                double value = in.readDouble();
                time.nowMs = in.readLong();
                if (question == 'q') {
                    Option<String> client = clientId.isEmpty() ? Option.empty() : Option.apply(clientId);
                    manager.updateQuota(
                        user.isEmpty() ? Option.empty() : Option.apply(user),
                        client,
                        client,
                        Double.isNaN(value) ? Option.empty() : Option.apply(new Quota(value, true)));
                } else {
                    KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
                    Session session = new Session(principal, InetAddress.getLoopbackAddress());
                    if (question == 'r') {
                        answer = manager.recordAndGetThrottleTimeMs(session, clientId, value, time.nowMs);
                    } else if (question == 'c') {
                        manager.recordNoThrottle(session, clientId, value);
                    } else if (question == 'w') {
                        answer = (int) manager.getMaxValueInQuotaWindow(session, clientId);
                    } else {
                        ControllerMutationQuotaManager mutations = (ControllerMutationQuotaManager) manager;
                        ControllerMutationQuota quota = question == 's'
                            ? mutations.newStrictQuotaFor(session, clientId)
                            : mutations.newPermissiveQuotaFor(session, clientId);
                        try {
                            quota.record(value);
                            answer = quota.throttleTime();
                        } catch (ThrottlingQuotaExceededException refused) {
                            answer = refused.throttleTimeMs();
                        }
                    }
                }
            }
            out.writeInt(answer);
            out.flush();
        }
    }
}
