import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/** The arguments of one request, with typed accessors. */
final class Arguments {
    private final Map<String, Object> given;

    Arguments(Map<String, Object> given) {
        this.given = given;
    }

    Object get(String name) {
        return given.get(name);
    }

    Set<String> names() {
        return given.keySet();
    }

    String text(String name) {
        return (String) given.get(name);
    }

    String text(String name, String standard) {
        return given.get(name) == null ? standard : text(name);
    }

    long number(String name, long standard) {
        return given.get(name) == null ? standard : (Long) given.get(name);
    }

    double decimal(String name, double standard) {
        return given.get(name) == null ? standard : ((Number) given.get(name)).doubleValue();
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(given.get(name));
    }

    @SuppressWarnings("unchecked")
    List<Object> list(String name) {
        return given.get(name) == null ? new ArrayList<>() : (List<Object>) given.get(name);
    }

    @SuppressWarnings("unchecked")
    Arguments object(String name) {
        return new Arguments((Map<String, Object>) given.get(name));
    }

    @SuppressWarnings("unchecked")
    List<Arguments> objects(String name) {
        List<Arguments> found = new ArrayList<>();
        for (Object item : list(name)) found.add(new Arguments((Map<String, Object>) item));
        return found;
    }

    /** The partitions of the request's only topic. */
    List<TopicPartition> partitions() {
        List<TopicPartition> found = new ArrayList<>();
        for (Object number : list("partitions")) {
            found.add(new TopicPartition(text("topic"), ((Long) number).intValue()));
        }
        return found;
    }
}
