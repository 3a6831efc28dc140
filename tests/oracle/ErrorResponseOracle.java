import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestAndSize;

/**
 * Error responses of Kafka's brokers to requests that failed as a whole, as a service on stdin and stdout.
 *
 * A request is an API key, a version, an error code, a message ("" for the code's default), and the bytes of a
 * request. The response is the bytes of AbstractRequest.getErrorResponse's response. Status 2 means that there is
 * none, and status 1 that Kafka rejects the request.
 */
public final class ErrorResponseOracle {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            ApiKeys key;
            try {
                key = ApiKeys.forId(in.readShort());
            } catch (EOFException end) {
                return;
            }
            short version = in.readShort();
            Errors error = Errors.forCode(in.readShort());
            String message = in.readUTF();
            byte[] body = in.readNBytes(in.readInt());
            byte status = 0;
            byte[] answer = new byte[0];
            try {
                AbstractRequest request = parse(key, version, body);
                Throwable thrown = message.isEmpty() ? error.exception() : error.exception(message);
                AbstractResponse response = request.getErrorResponse(0, thrown);
                if (response == null) {
                    status = 2;
                } else {
                    answer = bytes(response.data(), version);
                }
            } catch (Throwable refusal) {
                Throwable cause = refusal instanceof InvocationTargetException ? refusal.getCause() : refusal;
                status = 1;
                answer = String.valueOf(cause).getBytes(StandardCharsets.UTF_8);
            }
            out.writeByte(status);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    /** Kafka 3.9 parses a ByteBuffer, and 4.1 a Readable. */
    private static AbstractRequest parse(ApiKeys key, short version, byte[] body) throws Exception {
        for (Method method : AbstractRequest.class.getMethods()) {
            if (method.getName().equals("parseRequest")) {
                ByteBuffer buffer = ByteBuffer.wrap(body);
                boolean takesBuffer = method.getParameterTypes()[2] == ByteBuffer.class;
                Object source = takesBuffer ? buffer : new ByteBufferAccessor(buffer);
                return ((RequestAndSize) method.invoke(null, key, version, source)).request;
            }
        }
        throw new NoSuchMethodException("AbstractRequest.parseRequest");
    }

    private static byte[] bytes(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
