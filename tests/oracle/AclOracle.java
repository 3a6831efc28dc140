import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Decisions of Kafka's AclAuthorizer, as a service on stdin and stdout.
 *
 * A request is a set of ACLs, a principal, and names of resources of one type. The response contains, for each
 * operation starting at ALL, one byte for "any resource of the type" and one for each name: 1 means allowed.
 */
public final class AclOracle {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            boolean allowIfNoAcl;
            try {
                allowIfNoAcl = in.readBoolean();
            } catch (EOFException end) {
                return;
            }
            AclAuthorizer authorizer = authorizer(in, allowIfNoAcl);
            AuthorizableRequestContext context = context(in);
            ResourceType type = ResourceType.fromCode(in.readByte());
            String[] names = new String[in.readShort()];
            for (int index = 0; index < names.length; index++) {
                names[index] = in.readUTF();
            }
            for (AclOperation operation : AclOperation.values()) {
                if (operation.code() >= AclOperation.ALL.code()) {
                    out.writeBoolean(allowed(authorizer.authorizeByResourceType(context, operation, type)));
                    for (String name : names) {
                        ResourcePattern resource = new ResourcePattern(type, name, PatternType.LITERAL);
                        Action action = new Action(operation, resource, 1, false, false);
                        out.writeBoolean(allowed(authorizer.authorize(context, List.of(action)).get(0)));
                    }
                }
            }
            out.flush();
        }
    }

    private static AclAuthorizer authorizer(DataInputStream in, boolean allowIfNoAcl) throws Exception {
        AclAuthorizer authorizer = new AclAuthorizer();
        set(authorizer, "shouldAllowEveryoneIfNoAclIsFound", allowIfNoAcl);
        Set<KafkaPrincipal> superUsers = new HashSet<>();
        for (int left = in.readShort(); left > 0; left--) {
            superUsers.add(new KafkaPrincipal(in.readUTF(), in.readUTF()));
        }
        set(authorizer, "superUsers", CollectionConverters.asScala(superUsers).toSet());
        for (int left = in.readShort(); left > 0; left--) {
            ResourceType type = ResourceType.fromCode(in.readByte());
            ResourcePattern pattern = new ResourcePattern(type, in.readUTF(), PatternType.fromCode(in.readByte()));
            Set<AclEntry> entries = new HashSet<>();
            for (int more = in.readShort(); more > 0; more--) {
                entries.add(
                    new AclEntry(
                        new AccessControlEntry(
                            in.readUTF(),
                            in.readUTF(),
                            AclOperation.fromCode(in.readByte()),
                            AclPermissionType.fromCode(in.readByte()))));
            }
            authorizer.updateCache(
                pattern, new AclAuthorizer.VersionedAcls(CollectionConverters.asScala(entries).toSet(), 1));
        }
        return authorizer;
    }

    private static void set(AclAuthorizer authorizer, String name, Object value) throws Exception {
        Field field = AclAuthorizer.class.getDeclaredField(name);
        field.setAccessible(true);
        field.set(authorizer, value);
    }

    private static boolean allowed(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED;
    }

    private static AuthorizableRequestContext context(DataInputStream in) throws IOException {
        KafkaPrincipal principal = new KafkaPrincipal(in.readUTF(), in.readUTF());
        InetAddress address = InetAddress.getByName(in.readUTF());
        return new AuthorizableRequestContext() {
            @Override
            public KafkaPrincipal principal() {
                return principal;
            }

            @Override
            public InetAddress clientAddress() {
                return address;
            }

            @Override
            public String clientId() {
                return "";
            }

            @Override
            public String listenerName() {
                return "";
            }

            @Override
            public SecurityProtocol securityProtocol() {
                return SecurityProtocol.PLAINTEXT;
            }

            @Override
            public int requestType() {
                return 0;
            }

            @Override
            public int requestVersion() {
                return 0;
            }

            @Override
            public int correlationId() {
                return 0;
            }
        };
    }
}
