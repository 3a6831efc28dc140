import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs Kafka's command line tools one after another in one JVM. A request contains a class, its arguments and its
 * standard input; the response contains the tool's output and its exit code.
 */
public final class Tools {
    /** Scala's Console keeps the first System.out that it sees, so the stream stays and its target changes. */
    private static final class Switch extends OutputStream {
        private volatile OutputStream target = new ByteArrayOutputStream();

        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) {
            ((ByteArrayOutputStream) target).write(bytes, from, length);
        }
    }

    /** Thrown when a tool exits. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private static final Switch OUT = new Switch();
    private static final Switch ERR = new Switch();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static Integer exitCode = null;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        InvocationHandler exit = (proxy, method, given) -> exit((Integer) given[0]);
        replace("setExitProcedure", "Procedure", exit);
        replace("setHaltProcedure", "Procedure", exit);
        replace("setShutdownHookAdder", "ShutdownHookAdder", (proxy, method, given) -> HOOKS.add((Runnable) given[1]));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            @SuppressWarnings("unchecked")
            Map<String, Object> request = (Map<String, Object>) Json.parse(line);
            answers.println(Json.write(run(request)));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Replaces what Kafka's class Exit does. Kafka 4.4 has moved the class. */
    private static void replace(String setter, String kind, InvocationHandler handler) throws Exception {
        Class<?> exits = exits();
        Class<?> type = Class.forName(exits.getName() + "$" + kind);
        Object procedure = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
        exits.getMethod(setter, type).invoke(null, procedure);
    }

    private static Class<?> exits() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException older) {
            return Class.forName("org.apache.kafka.common.utils.Exit");
        }
    }

    private static Object exit(int code) {
        if (exitCode == null) exitCode = code;
        // A tool that catches this exception may continue to print, but a real process would have exited.
        OUT.target = new ByteArrayOutputStream();
        ERR.target = new ByteArrayOutputStream();
        throw new Exited();
    }

    private static Map<String, Object> run(Map<String, Object> request) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        OUT.target = out;
        ERR.target = err;
        HOOKS.clear();
        exitCode = null;
        System.setIn(new ByteArrayInputStream(((String) request.get("stdin")).getBytes(StandardCharsets.UTF_8)));
        String[] arguments = ((List<?>) request.get("args")).toArray(new String[0]);
        try {
            Class<?> tool = Class.forName((String) request.get("class"));
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (exitCode == null) {
                exitCode = 1;
                failure.getCause().printStackTrace();
            }
        }
        OUT.target = out;
        ERR.target = err;
        for (Runnable hook : HOOKS) {
            Thread thread = new Thread(hook);
            thread.start();
            thread.join(10_000);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("code", exitCode == null ? 0 : exitCode);
        answer.put("out", out.toString("UTF-8"));
        answer.put("err", err.toString("UTF-8"));
        return answer;
    }
}
