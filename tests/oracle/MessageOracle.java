import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Kafka's own message classes as a service on stdin and stdout.
 *
 * A request is a class name, a version, the bytes of a message and the same message as JSON. The response is Kafka's
 * JSON for those bytes and Kafka's bytes for that JSON, or Kafka's error.
 */
public final class MessageOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A generated message class and the two methods of its JSON converter. */
    private record Type(Class<?> message, Method read, Method write) {
        static Type of(String name) throws ReflectiveOperationException {
            Class<?> message = Class.forName(name);
            Class<?> converter = Class.forName(name + "JsonConverter");
            return new Type(
                message,
                converter.getMethod("read", JsonNode.class, short.class),
                converter.getMethod("write", message, short.class));
        }
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        Map<String, Type> types = new HashMap<>();
        while (true) {
            String name;
            try {
                name = in.readUTF();
            } catch (EOFException end) {
                return;
            }
            short version = in.readShort();
            byte[] bytes = in.readNBytes(in.readInt());
            byte[] json = in.readNBytes(in.readInt());
            byte[] first;
            byte[] second;
            byte status = 0;
            try {
                Type type = types.get(name);
                if (type == null) {
                    type = Type.of(name);
                    types.put(name, type);
                }
                first = toJson(type, version, bytes);
                second = toBytes(type, version, json);
            } catch (Throwable refusal) {
                Throwable cause = refusal instanceof InvocationTargetException ? refusal.getCause() : refusal;
                status = 1;
                first = String.valueOf(cause).getBytes(StandardCharsets.UTF_8);
                second = new byte[0];
            }
            out.writeByte(status);
            out.writeInt(first.length);
            out.write(first);
            out.writeInt(second.length);
            out.write(second);
            out.flush();
        }
    }

    private static byte[] toJson(Type type, short version, byte[] bytes) throws Exception {
        Message message = (Message) type.message().getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        }
        return JSON.writeValueAsBytes(type.write().invoke(null, message, version));
    }

    private static byte[] toBytes(Type type, short version, byte[] json) throws Exception {
        Message message = (Message) type.read().invoke(null, JSON.readTree(json), version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("shorter than its announced size");
        }
        return buffer.array();
    }
}
