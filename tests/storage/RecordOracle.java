import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/** Kafka's record classes as a service. Request: operation byte, length, payload. Response: length, payload. */
public class RecordOracle {
    static final TopicPartition PARTITION = new TopicPartition("t", 0);
    static final LogValidator.MetricsRecorder NO_METRICS = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    };

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            byte operation;
            try {
                operation = in.readByte();
            } catch (EOFException e) {
                return;
            }
            ByteBuffer payload = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            byte[] answer;
            try {
                answer = answer((char) operation, payload);
            } catch (Throwable e) {
                answer = ("!" + e).getBytes(StandardCharsets.UTF_8);
            }
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    static byte[] answer(char operation, ByteBuffer payload) throws IOException {
        switch (operation) {
            case 'B': return build(payload);
            case 'L': return list(payload);
            case 'D': return downConvert(payload);
            case 'V': return validate(payload);
            case 'S': return rewriteSnapshot(payload);
            default: throw new IllegalArgumentException("operation " + operation);
        }
    }

    /** Payload: magic, codec, timestamp type, base offset, append time, producer id, epoch, sequence, records. */
    static byte[] build(ByteBuffer in) {
        byte magic = in.get();
        Compression codec = Compression.of(CompressionType.forId(in.get())).build();
        TimestampType type = TimestampType.forName(in.get() == 1 ? "LogAppendTime" : "CreateTime");
        long baseOffset = in.getLong();
        long appendTime = in.getLong();
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic, codec, type,
            baseOffset, appendTime, in.getLong(), in.getShort(), in.getInt(), false, -1);
        int count = in.getInt();
        for (int i = 0; i < count; i++) {
            long timestamp = in.getLong();
            byte[] key = bytes(in);
            byte[] value = bytes(in);
            Header[] headers = new Header[in.getInt()];
            for (int j = 0; j < headers.length; j++)
                headers[j] = new RecordHeader(new String(bytes(in), StandardCharsets.UTF_8), bytes(in));
            builder.appendWithOffset(baseOffset + i, timestamp, key, value, headers);
        }
        return toBytes(builder.build());
    }

    /** Response: one line for each record, with offset, timestamp, key, value and headers. */
    static byte[] list(ByteBuffer in) {
        StringBuilder lines = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(in).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                lines.append(record.offset()).append(' ').append(record.timestamp()).append(' ');
                lines.append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers())
                    lines.append(' ').append(header.key()).append('=')
                        .append(hex(header.value() == null ? null : ByteBuffer.wrap(header.value())));
                lines.append('\n');
            }
        }
        return lines.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Payload: magic, first offset, batches. */
    static byte[] downConvert(ByteBuffer in) {
        byte magic = in.get();
        long firstOffset = in.getLong();
        return toBytes(MemoryRecords.readableRecords(in.slice()).downConvert(magic, firstOffset, Time.SYSTEM).records());
    }

    /** Payload: Produce version, compacted, timestamp type, limits before and after now in ms, records. */
    static byte[] validate(ByteBuffer in) {
        short version = in.getShort();
        boolean compacted = in.get() == 1;
        TimestampType type = TimestampType.forName(in.get() == 1 ? "LogAppendTime" : "CreateTime");
        long before = in.getLong();
        long after = in.getLong();
        MemoryRecords records = MemoryRecords.readableRecords(in.slice());
        Throwable cause;
        try {
            ProduceRequest.validateRecords(version, records);
            CompressionType source = CompressionType.NONE;
            for (MutableRecordBatch batch : records.batches()) {
                if (batch.magic() >= 2 && batch.baseOffset() != 0)
                    throw new InvalidRecordException("base offset");
                if (!batch.isValid())
                    throw new CorruptRecordException("crc");
                if (batch.compressionType() != CompressionType.NONE)
                    source = batch.compressionType();
            }
            LogValidator.ValidationResult result = new LogValidator(records, PARTITION, Time.SYSTEM, source,
                Compression.of(source).build(), compacted, (byte) 2, type, before, after, 7, AppendOrigin.CLIENT,
                MetadataVersion.latestProduction()).validateMessagesAndAssignOffsets(
                    PrimitiveRef.ofLong(0), NO_METRICS, BufferSupplier.NO_CACHING);
            return ("0 " + result.maxTimestampMs).getBytes(StandardCharsets.UTF_8);
        } catch (RecordValidationException e) {
            cause = e.invalidException();
        } catch (Throwable e) {
            cause = e;
        }
        return (Errors.forException(cause).code() + " " + cause).getBytes(StandardCharsets.UTF_8);
    }

    /** Reads a producer snapshot, and writes it again. */
    static byte[] rewriteSnapshot(ByteBuffer in) throws IOException {
        File folder = Files.createTempDirectory("snapshot").toFile();
        File given = new File(folder, "given");
        File written = new File(folder, "written");
        try {
            Files.write(given.toPath(), in.array());
            Map<Long, ProducerStateEntry> entries = new LinkedHashMap<>();
            for (ProducerStateEntry entry : ProducerStateManager.readSnapshot(given))
                entries.put(entry.producerId(), entry);
            ProducerStateManager.writeSnapshot(written, entries, false);
            return Files.readAllBytes(written.toPath());
        } finally {
            given.delete();
            written.delete();
            folder.delete();
        }
    }

    static byte[] bytes(ByteBuffer in) {
        int length = in.getInt();
        if (length < 0)
            return null;
        byte[] content = new byte[length];
        in.get(content);
        return content;
    }

    static byte[] toBytes(MemoryRecords records) {
        byte[] content = new byte[records.sizeInBytes()];
        records.buffer().get(content);
        return content;
    }

    static String hex(ByteBuffer content) {
        if (content == null)
            return "-";
        byte[] copy = new byte[content.remaining()];
        content.duplicate().get(copy);
        return "x" + HexFormat.of().formatHex(copy);
    }
}
