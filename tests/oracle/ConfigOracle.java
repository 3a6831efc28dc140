import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** Kafka's check of broker settings: reads property files separated by empty lines, and prints a line for each. */
public class ConfigOracle {
    public static void main(String[] arguments) throws Exception {
        String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        for (String settings : input.split("\n\n+")) {
            Properties properties = new Properties();
            properties.load(new StringReader(settings));
            try {
                KafkaConfig.fromProps(properties);
                System.out.println("accepted");
            } catch (RuntimeException error) {
                System.out.println("rejected " + error.getMessage().replace('\n', ' '));
            }
        }
    }
}
