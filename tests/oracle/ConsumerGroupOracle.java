// Answers questions about consumer groups with Kafka's own classes: target assignments, metadata hashes, and the
// iteration order of hash tables. A question is a line of JSON, an answer is JSON after its length in bytes.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.TargetAssignmentResult;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;
import org.apache.kafka.coordinator.group.util.UpdatedMembersAndTargetAssignmentView;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

public class ConsumerGroupOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        DataOutputStream out = new DataOutputStream(System.out);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            JsonNode answer = switch (question.get("kind").asText()) {
                case "assign" -> assign(question);
                case "hash" -> hash(question);
                case "table" -> table(question);
                case "timeline" -> timeline(question);
                default -> throw new IllegalArgumentException(line);
            };
            byte[] bytes = JSON.writeValueAsBytes(answer);
            out.writeInt(bytes.length);
            out.write(bytes);
            out.flush();
        }
    }

    private static JsonNode assign(JsonNode question) throws Exception {
        Map<String, ConsumerGroupMember> all = new HashMap<>();
        Map<String, Assignment> targets = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            String id = member.get("id").asText();
            all.put(id, new ConsumerGroupMember.Builder(id)
                .setInstanceId(member.get("instance").isNull() ? null : member.get("instance").asText())
                .setRackId(member.get("rack").isNull() ? null : member.get("rack").asText())
                .setSubscribedTopicNames(texts(member.get("names")))
                .setSubscribedTopicRegex(member.get("regex").asText())
                .build());
            if (member.get("target").isNull()) {
                continue;
            }
            Assignment target = stored(member.get("target"));
            targets.put(id, target);
            target.partitions().forEach((topic, partitions) -> partitions.forEach(
                partition -> inverted.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, id)));
        }
        TimelineHashMap<String, ConsumerGroupMember> members =
            new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
        for (JsonNode event : question.get("history")) {
            String id = event.asText().substring(1);
            if (event.asText().charAt(0) == '+') {
                members.put(id, all.getOrDefault(id, new ConsumerGroupMember.Builder(id).build()));
            } else {
                members.remove(id);
            }
        }
        UpdatedMembersAndTargetAssignmentView<ConsumerGroupMember, Assignment> view =
            new UpdatedMembersAndTargetAssignmentView<>(
                members, new HashMap<>(), targets, ConsumerGroupMember::instanceId);
        if (!question.get("joining").isNull()) {
            String id = question.get("joining").asText();
            view.addOrUpdateMember(id, all.get(id));
        }
        Map<String, ResolvedRegularExpression> matches = new HashMap<>();
        question.get("matches").properties().forEach(match -> matches.put(
            match.getKey(), new ResolvedRegularExpression(new HashSet<>(texts(match.getValue())), 0, 0)));
        ConsumerGroupPartitionAssignor assignor =
            question.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        ConsumerTargetAssignmentBuilder builder = new ConsumerTargetAssignmentBuilder("group", 1, assignor)
            .withTime(Time.SYSTEM)
            .withMembers(view.members())
            .withSubscriptionType(question.get("homogeneous").asBoolean()
                ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS)
            .withTargetAssignment(view.targetAssignment())
            .withInvertedTargetAssignment(inverted)
            .withMetadataImage(image(question))
            .withResolvedRegularExpressions(matches);
        ObjectNode answer = JSON.createObjectNode();
        TargetAssignmentResult result = builder.build();
        ArrayNode records = answer.putArray("records");
        for (CoordinatorRecord record : result.records()) {
            if (record.key() instanceof ConsumerGroupTargetAssignmentMemberKey key) {
                ArrayNode pair = records.addArray().add(key.memberId());
                ArrayNode topics = pair.addArray();
                ConsumerGroupTargetAssignmentMemberValue value =
                    (ConsumerGroupTargetAssignmentMemberValue) record.value().message();
                for (var topic : value.topicPartitions()) {
                    ArrayNode partitions = topics.addArray().add(topic.topicId().toString()).addArray();
                    topic.partitions().forEach(partitions::add);
                }
            }
        }
        ArrayNode visited = answer.putArray("members");
        view.members().forEach((id, member) -> visited.add(id));
        return answer;
    }

    private static Assignment stored(JsonNode target) {
        ConsumerGroupTargetAssignmentMemberValue value = new ConsumerGroupTargetAssignmentMemberValue();
        for (JsonNode topic : target) {
            List<Integer> partitions = new ArrayList<>();
            topic.get(1).forEach(partition -> partitions.add(partition.asInt()));
            value.topicPartitions().add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                .setTopicId(Uuid.fromString(topic.get(0).asText()))
                .setPartitions(partitions));
        }
        return Assignment.fromRecord(value);
    }

    private static JsonNode hash(JsonNode question) {
        CoordinatorMetadataImage image = image(question);
        ObjectNode answer = JSON.createObjectNode();
        ObjectNode topics = answer.putObject("topics");
        Map<String, Long> hashes = new HashMap<>();
        for (String name : image.topicNames()) {
            hashes.put(name, Utils.computeTopicHash(name, image));
            topics.put(name, hashes.get(name));
        }
        return answer.put("group", Utils.computeGroupHash(hashes));
    }

    private static CoordinatorMetadataImage image(JsonNode question) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        JsonNode racks = question.get("racks");
        for (int broker = 0; broker < racks.size(); broker++) {
            delta.replay(new RegisterBrokerRecord()
                .setBrokerId(broker)
                .setIncarnationId(Uuid.randomUuid())
                .setRack(racks.get(broker).isNull() ? null : racks.get(broker).asText()));
        }
        for (JsonNode topic : question.get("topics")) {
            Uuid id = Uuid.fromString(topic.get("id").asText());
            delta.replay(new TopicRecord().setName(topic.get("name").asText()).setTopicId(id));
            for (int partition = 0; partition < topic.get("partitions").size(); partition++) {
                List<Integer> replicas = new ArrayList<>();
                topic.get("partitions").get(partition).forEach(replica -> replicas.add(replica.asInt()));
                delta.replay(new PartitionRecord()
                    .setTopicId(id)
                    .setPartitionId(partition)
                    .setReplicas(replicas)
                    .setIsr(replicas)
                    .setLeader(replicas.isEmpty() ? -1 : replicas.get(0)));
            }
        }
        return new KRaftCoordinatorMetadataImage(delta.apply(MetadataProvenance.EMPTY));
    }

    private static JsonNode table(JsonNode question) {
        HashMap<Object, Boolean> table = new HashMap<>(question.get("capacity").asInt());
        for (JsonNode event : question.get("events")) {
            JsonNode text = event.get(1);
            Object key = switch (question.get("keys").asText()) {
                case "int" -> text.asInt();
                case "uuid" -> Uuid.fromString(text.asText());
                default -> text.asText();
            };
            switch (event.get(0).asText()) {
                case "put" -> table.put(key, true);
                case "computeIfAbsent" -> table.computeIfAbsent(key, __ -> true);
                default -> table.remove(key);
            }
        }
        ArrayNode answer = JSON.createArrayNode();
        table.keySet().forEach(key -> answer.add(key.toString()));
        return answer;
    }

    private static JsonNode timeline(JsonNode question) {
        TimelineHashMap<String, Boolean> table =
            new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
        for (JsonNode event : question.get("events")) {
            if (event.get(0).asText().equals("put")) {
                table.put(event.get(1).asText(), true);
            } else {
                table.remove(event.get(1).asText());
            }
        }
        ArrayNode answer = JSON.createArrayNode();
        table.keySet().forEach(answer::add);
        return answer;
    }

    private static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }
}
