import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Kafka's and Java's own handling of TLS settings, of names, and of the rules that map them.
 *
 * A request is a byte, the number of byte strings, and each string with its size. A response is a byte, 0 for a
 * result or 1 for an exception's message, and a byte string with its size.
 */
public class SslOracle {
    private static final Set<String> PASSWORDS = Set.of(
        "ssl.keystore.password", "ssl.key.password", "ssl.keystore.key", "ssl.keystore.certificate.chain",
        "ssl.truststore.password", "ssl.truststore.certificates");
    private static final Set<String> LISTS = Set.of("ssl.enabled.protocols", "ssl.cipher.suites");

    public static void main(String[] none) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(System.out);
        while (true) {
            int kind;
            try {
                kind = in.readByte();
            } catch (EOFException end) {
                return;
            }
            byte[][] parts = new byte[in.readInt()][];
            for (int i = 0; i < parts.length; i++)
                parts[i] = in.readNBytes(in.readInt());
            String answer;
            int status = 0;
            try {
                answer = kind == 0 ? configured(parts) : kind == 1 ? name(parts[0]) : mapped(parts);
            } catch (Throwable error) {
                answer = error.getMessage() + (error.getCause() == null ? "" : " < " + error.getCause().getMessage());
                status = 1;
            }
            byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
            out.writeByte(status);
            out.writeInt(bytes.length);
            out.write(bytes);
            out.flush();
        }
    }

    /** The arguments are names and values of settings in turn. Returns the contents of the stores. */
    private static String configured(byte[][] parts) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        configs.put("ssl.protocol", "TLSv1.3");
        configs.put("ssl.keystore.type", "JKS");
        configs.put("ssl.truststore.type", "JKS");
        configs.put("ssl.client.auth", "none");
        for (int i = 0; i < parts.length; i += 2) {
            String name = text(parts[i]);
            String value = text(parts[i + 1]);
            Object parsed = PASSWORDS.contains(name) ? new Password(value)
                : LISTS.contains(name) ? Arrays.asList(value.split(",")) : value;
            configs.put(name, parsed);
        }
        DefaultSslEngineFactory factory = new DefaultSslEngineFactory();
        factory.configure(configs);
        factory.createServerSslEngine("localhost", 0);
        return stored(factory.keystore()) + ";" + stored(factory.truststore());
    }

    private static String stored(KeyStore store) throws Exception {
        if (store == null)
            return "none";
        Set<String> entries = new TreeSet<>();
        for (String alias : Collections.list(store.aliases())) {
            boolean key = store.isKeyEntry(alias);
            int length = key ? store.getCertificateChain(alias).length : 1;
            X500Principal owner = ((java.security.cert.X509Certificate) store.getCertificate(alias))
                .getSubjectX500Principal();
            entries.add((key ? "key of " : "trusts ") + owner.getName() + " " + length);
        }
        return String.join("|", entries);
    }

    private static String name(byte[] encoded) {
        return new X500Principal(encoded).getName();
    }

    private static String mapped(byte[][] parts) throws Exception {
        return new SslPrincipalMapper(text(parts[0])).getName(text(parts[1]));
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
