import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;

/**
 * Kafka's own SASL classes as a service on stdin and stdout.
 *
 * A request is a number of texts, each with its size. For "exchange", a callback handler's class, settings and JAAS
 * options (lines of name=value), and the messages of one exchange, it returns the responses, one per line. For
 * "short name", a realm, rules (one per line) and a principal, it returns the short name. Exceptions
 * are returned as "!CLASS: MESSAGE".
 */
public final class SaslOracle {
    private static final Map<String, AuthenticateCallbackHandler> HANDLERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            List<byte[]> question = new ArrayList<>();
            try {
                int count = in.readInt();
                for (int i = 0; i < count; i++) {
                    question.add(in.readNBytes(in.readInt()));
                }
            } catch (EOFException end) {
                return;
            }
            byte[] answer = answer(question).getBytes(StandardCharsets.UTF_8);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private static String answer(List<byte[]> question) {
        try {
            if (text(question.get(0)).equals("exchange")) {
                return exchange(question);
            }
            List<String> rules = lines(text(question.get(2)));
            KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules(text(question.get(1)), rules);
            return namer.shortName(KerberosName.parse(text(question.get(3))));
        } catch (Throwable thrown) {
            return thrown(thrown);
        }
    }

    private static String exchange(List<byte[]> question) throws Exception {
        String settings = text(question.get(2));
        String options = text(question.get(3));
        String key = text(question.get(1)) + settings + "\0" + options;
        AuthenticateCallbackHandler handler = HANDLERS.get(key);
        if (handler == null) {
            String url = pairs(settings).getOrDefault("sasl.oauthbearer.jwks.endpoint.url", "");
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            handler = (AuthenticateCallbackHandler) Class.forName(text(question.get(1))).getDeclaredConstructor().newInstance();
            AppConfigurationEntry entry = new AppConfigurationEntry(
                "module", AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, pairs(options));
            handler.configure(typed(pairs(settings)), "OAUTHBEARER", List.of(entry));
            HANDLERS.put(key, handler);
        }
        OAuthBearerSaslServer server = new OAuthBearerSaslServer(handler);
        List<String> answers = new ArrayList<>();
        for (byte[] message : question.subList(4, question.size())) {
            try {
                answers.add(text(server.evaluateResponse(message)));
                if (server.isComplete()) {
                    answers.add("=" + server.getAuthorizationID() + " "
                        + server.getNegotiatedProperty("CREDENTIAL.LIFETIME.MS"));
                    break;
                }
            } catch (Throwable thrown) {
                answers.add(thrown(thrown));
                break;
            }
        }
        return String.join("\n", answers);
    }

    private static Map<String, Object> typed(Map<String, String> settings) {
        Map<String, Object> found = new HashMap<>();
        settings.forEach((name, value) -> found.put(name,
            name.endsWith(".ms") ? (Object) Long.valueOf(value)
                : name.endsWith(".seconds") ? (Object) Integer.valueOf(value)
                : name.endsWith(".audience") ? Arrays.asList(value.split(",")) : value));
        return found;
    }

    private static Map<String, String> pairs(String text) {
        Map<String, String> found = new HashMap<>();
        for (String line : lines(text)) {
            String[] parts = line.split("=", 2);
            found.put(parts[0], parts[1]);
        }
        return found;
    }

    private static List<String> lines(String text) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split("\n"));
    }

    private static String text(byte[] content) {
        return new String(content, StandardCharsets.UTF_8);
    }

    private static String thrown(Throwable thrown) {
        return "!" + thrown.getClass().getSimpleName() + ": " + thrown.getMessage();
    }
}
