// Prints what a broker of one Kafka version reports to clients: a line "api KEY LOWEST HIGHEST" for each API, and
// a line "feature NAME LOWEST HIGHEST" for each feature. The class path contains kafka-clients of that version
// and, from Kafka 4 on, kafka-server-common.

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.Optional;

public class ApiTable {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    public static void main(String[] arguments) throws Exception {
        Class<?> keys = Class.forName(PROTOCOL + "ApiKeys");
        Object listener = listener();
        for (Object key : apis(keys, listener)) {
            int id = ((Number) keys.getField("id").get(key)).intValue();
            int[] versions = versions(keys, key, id, listener);
            if (versions != null) {
                System.out.println("api " + id + " " + versions[0] + " " + versions[1]);
            }
        }
        printFeatures();
    }

    // Brokers with ZooKeeper support no features.
    private static void printFeatures() throws Exception {
        Class<?> features;
        Class<?> metadata;
        try {
            features = Class.forName("org.apache.kafka.server.common.Feature");
            metadata = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        } catch (ClassNotFoundException old) {
            return;
        }
        Object lowest = metadata.getField("MINIMUM_VERSION").get(null);
        Object highest = metadata.getMethod("latestProduction").invoke(null);
        print("metadata.version", number(lowest, "featureLevel"), number(highest, "featureLevel"));
        for (Object feature : (Collection<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            Object name = feature.getClass().getMethod("featureName").invoke(feature);
            print(name, number(feature, "minimumProduction"), number(feature, "latestProduction"));
        }
    }

    private static void print(Object feature, int lowest, int highest) {
        if (highest > 0) {
            System.out.println("feature " + feature + " " + lowest + " " + highest);
        }
    }

    // The listener of brokers with ZooKeeper, or without it if this version has no others (Kafka 4).
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object listener() {
        try {
            Class type = Class.forName("org.apache.kafka.common.message.ApiMessageType$ListenerType");
            try {
                return Enum.valueOf(type, "ZK_BROKER");
            } catch (IllegalArgumentException missing) {
                return Enum.valueOf(type, "BROKER");
            }
        } catch (ClassNotFoundException old) {
            return null;
        }
    }

    private static Collection<?> apis(Class<?> keys, Object listener) throws Exception {
        if (listener != null) {
            return (Collection<?>) keys.getMethod("apisForListener", listener.getClass()).invoke(null, listener);
        }
        try {
            return (Collection<?>) keys.getMethod("enabledApis").invoke(null);
        } catch (NoSuchMethodException old) {
            return Arrays.asList(keys.getEnumConstants());
        }
    }

    private static int[] versions(Class<?> keys, Object key, int id, Object listener) throws Exception {
        Optional<?> found = null;
        if (listener != null) {
            try {
                Method method = keys.getMethod("toApiVersionForApiResponse", boolean.class, listener.getClass());
                found = (Optional<?>) method.invoke(key, false, listener);
            } catch (NoSuchMethodException old) {
                try {
                    found = (Optional<?>) keys.getMethod("toApiVersion", boolean.class).invoke(key, false);
                } catch (NoSuchMethodException older) {
                    // Versions before 3.5 have no unstable APIs.
                }
            }
        }
        if (found != null) {
            if (found.isEmpty()) {
                return null;
            }
            Object range = found.get();
            return new int[] {number(range, "minVersion"), number(range, "maxVersion")};
        }
        try {
            return new int[] {number(key, "oldestVersion"), number(key, "latestVersion")};
        } catch (NoSuchMethodException old) {
            Class<?> protocol = Class.forName(PROTOCOL + "Protocol");
            return new int[] {old(protocol, "MIN_VERSIONS")[id], old(protocol, "CURR_VERSION")[id]};
        }
    }

    private static short[] old(Class<?> protocol, String name) throws Exception {
        Field field = protocol.getDeclaredField(name);
        field.setAccessible(true);
        return (short[]) field.get(null);
    }

    private static int number(Object target, String method) throws Exception {
        return ((Number) target.getClass().getMethod(method).invoke(target)).intValue();
    }
}
