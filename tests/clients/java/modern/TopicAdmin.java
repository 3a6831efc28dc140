import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** The admin operations on topics whose API has not changed since 1.1. */
final class TopicAdmin {
    private TopicAdmin() { }

    static AdminClient connect(Arguments request) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", request.text("bootstrap"));
        Driver.secure(settings);
        return AdminClient.create(settings);
    }

    /** The response, or null if the verb is not one of these. */
    static Map<String, Object> call(AdminClient admin, Arguments request) throws Exception {
        String topic = request.text("topic");
        switch (request.text("do")) {
            case "create_topic": {
                short replication = (short) request.number("replication", 1);
                NewTopic wanted = new NewTopic(topic, (int) request.number("partitions", 1), replication);
                wanted.configs(request.get("configs") == null ? new HashMap<>() : texts(request.object("configs")));
                admin.createTopics(Collections.singleton(wanted)).all().get();
                return new LinkedHashMap<>();
            }
            case "delete_topic":
                admin.deleteTopics(Collections.singleton(topic)).all().get();
                return new LinkedHashMap<>();
            case "list_topics":
                return Driver.with("topics", new TreeSet<>(admin.listTopics().names().get()));
            case "describe_topic": {
                List<Object> shown = new ArrayList<>();
                for (TopicPartitionInfo part : Compat.describe(admin, topic).partitions()) {
                    shown.add(Arrays.<Object>asList(part.partition(), part.replicas().size(), part.isr().size()));
                }
                return Driver.with("partitions", shown);
            }
            case "topic_config": {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                Config found = admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource);
                Map<String, Object> shown = new TreeMap<>();
                for (ConfigEntry entry : found.entries()) {
                    shown.put(entry.name(), Arrays.<Object>asList(entry.value(), entry.isDefault()));
                }
                return Driver.with("configs", shown);
            }
            case "add_partitions": {
                NewPartitions total = NewPartitions.increaseTo((int) request.number("total", 0));
                admin.createPartitions(Collections.singletonMap(topic, total)).all().get();
                return new LinkedHashMap<>();
            }
            case "delete_records": {
                Map<TopicPartition, RecordsToDelete> asked = new HashMap<>();
                Arguments before = request.object("before");
                for (String number : before.names()) {
                    asked.put(
                        new TopicPartition(topic, Integer.parseInt(number)),
                        RecordsToDelete.beforeOffset(before.number(number, 0)));
                }
                Map<String, Object> low = new TreeMap<>();
                for (Map.Entry<TopicPartition, ?> entry : asked.entrySet()) {
                    long mark = admin.deleteRecords(asked).lowWatermarks().get(entry.getKey()).get().lowWatermark();
                    low.put(String.valueOf(entry.getKey().partition()), mark);
                }
                return Driver.with("low", low);
            }
            case "describe_cluster": {
                Map<String, Object> shown = new LinkedHashMap<>();
                shown.put("nodes", admin.describeCluster().nodes().get().size());
                shown.put("has_cluster_id", !admin.describeCluster().clusterId().get().isEmpty());
                return shown;
            }
            default:
                return null;
        }
    }

    static Map<String, String> texts(Arguments given) {
        Map<String, String> found = new HashMap<>();
        for (String name : given.names()) found.put(name, given.text(name));
        return found;
    }
}
