import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/**
 * Java Paimon as an outside judge of what we write, and as the writer of what we must read.
 *
 * <pre>
 *   Oracle COMMAND --warehouse W --table db.t ...
 *
 *   dump      [--snapshot N] [--columns a,b]            rows as JSON lines
 *             [--where JSON]                            columns that must have these values, pushed down
 *   create    --schema SCHEMA.json                      no snapshot
 *   write     [--schema SCHEMA.json] --rows FILE.jsonl  one commit; creates the table when it is missing
 *   overwrite --rows FILE.jsonl [--partition JSON]      whole table, or the partition given
 *   prepare   --rows FILE.jsonl --name X                files written, nothing published
 *   publish   --name X                                  commits what prepare left
 *   compact                                             full compaction, one commit
 *   rollback  --to N
 *   expire    --retain N                                keeps the N newest snapshots
 *   alter     --changes JSON                            [{"add":"c","type":"INT"}, {"drop":..}, {"rename":..,"to":..}, {"cast":..,"type":..}, {"set":..,"value":..}]
 *   serve                                               one JSON array of such arguments a line on standard input
 * </pre>
 *
 * <p>Commits take {@code --user U --identifier N}. After the output of a command stands one line, {@code ok
 * TEXT} or {@code err TEXT}; rows start with an opening brace, so they cannot be mistaken for it. db.t$files and the
 * other system tables can be dumped too.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintWriter out;
    private final Map<String, Prepared> prepared = new HashMap<>();

    private static final class Prepared {
        FileStoreTable table;
        TableWriteImpl<?> write;
        List<CommitMessage> messages;
        String user;
        long identifier;
    }

    private Oracle(PrintWriter out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        PrintWriter out =
                new PrintWriter(
                        new BufferedWriter(
                                new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));
        Oracle oracle = new Oracle(out);
        boolean good = true;
        if (args.length == 1 && args[0].equals("serve")) {
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                oracle.answer(JSON.readValue(line, String[].class));
            }
        } else {
            good = oracle.answer(args);
        }
        System.exit(good ? 0 : 1);
    }

    private boolean answer(String[] args) {
        boolean good = false;
        try {
            String text = run(args[0], options(args));
            out.println("ok " + text);
            good = true;
        } catch (Throwable e) {
            StringBuilder why = new StringBuilder();
            for (Throwable t = e; t != null && t.getCause() != t; t = t.getCause()) {
                why.append(why.length() > 0 ? " <- " : "").append(t);
            }
            out.println("err " + why.toString().replace('\n', ' ').replace('\r', ' '));
        }
        out.flush();
        return good;
    }

    private static Map<String, String> options(String[] args) {
        Map<String, String> o = new HashMap<>();
        for (int i = 1; i + 1 < args.length; i += 2) {
            if (!args[i].startsWith("--")) {
                throw new IllegalArgumentException("expected an option, got " + args[i]);
            }
            o.put(args[i].substring(2), args[i + 1]);
        }
        return o;
    }

    private static String need(Map<String, String> o, String key) {
        String v = o.get(key);
        if (v == null) {
            throw new IllegalArgumentException("missing --" + key);
        }
        return v;
    }

    private String run(String command, Map<String, String> o) throws Exception {
        if (command.equals("publish")) {
            return publish(need(o, "name"));
        }
        CatalogContext context = CatalogContext.create(new Path(need(o, "warehouse")));
        try (Catalog catalog = CatalogFactory.createCatalog(context)) {
            Identifier id = Identifier.fromString(need(o, "table"));
            if (o.containsKey("schema")) {
                create(catalog, id, o.get("schema"));
            }
            if (command.equals("create")) {
                return "";
            }
            if (command.equals("alter")) {
                alter(catalog, id, need(o, "changes"));
                return "";
            }
            Table table = catalog.getTable(id);
            if (command.equals("dump")) {
                return dump(table, o);
            }
            return change(command, (FileStoreTable) table, o);
        }
    }

    private String change(String command, FileStoreTable table, Map<String, String> o)
            throws Exception {
        switch (command) {
            case "write":
                return write(table, o, null);
            case "overwrite":
                return write(table, o, partition(o.get("partition")));
            case "prepare":
                prepared.put(need(o, "name"), prepare(table, o, null));
                return "";
            case "compact":
                return compact(table, o);
            case "rollback":
                table.rollbackTo(Long.parseLong(need(o, "to")));
                return latest(table);
            case "expire":
                int n = Integer.parseInt(need(o, "retain"));
                int gone =
                        table.newExpireSnapshots()
                                .config(
                                        ExpireConfig.builder()
                                                .snapshotRetainMax(n)
                                                .snapshotRetainMin(n)
                                                .snapshotTimeRetain(Duration.ofMillis(1))
                                                .build())
                                .expire();
                return Integer.toString(gone);
            default:
                throw new IllegalArgumentException("no command " + command);
        }
    }

    // ---- reading -----------------------------------------------------------

    private String dump(Table table, Map<String, String> o) throws Exception {
        if (o.containsKey("snapshot")) {
            table = table.copy(Collections.singletonMap("scan.snapshot-id", o.get("snapshot")));
        }
        ReadBuilder builder = table.newReadBuilder();
        if (o.containsKey("columns")) {
            List<String> names = table.rowType().getFieldNames();
            String[] wanted = o.get("columns").split(",");
            int[] indexes = new int[wanted.length];
            for (int i = 0; i < wanted.length; i++) {
                indexes[i] = names.indexOf(wanted[i]);
            }
            builder = builder.withProjection(indexes);
        }
        if (o.containsKey("where")) {
            builder = builder.withFilter(equal(table.rowType(), JSON.readTree(o.get("where"))));
        }
        ReadBuilder reading = builder;
        long[] rows = {0};
        StringBuilder line = new StringBuilder();
        try (RecordReader<InternalRow> r =
                builder.newRead().executeFilter().createReader(builder.newScan().plan())) {
            r.forEachRemaining(
                    row -> {
                        line.setLength(0);
                        Notation.row(line, row, reading.readType(), null);
                        out.println(line);
                        rows[0]++;
                    });
        }
        return Long.toString(rows[0]);
    }

    /** Statistics of files and the bucket of a key are used to skip what cannot hold such rows. */
    private static List<Predicate> equal(RowType type, JsonNode values) {
        PredicateBuilder builder = new PredicateBuilder(type);
        List<Predicate> all = new ArrayList<>();
        values.fields()
                .forEachRemaining(
                        e -> {
                            int i = type.getFieldIndex(e.getKey());
                            all.add(
                                    e.getValue().isNull()
                                            ? builder.isNull(i)
                                            : builder.equal(
                                                    i,
                                                    Notation.parse(
                                                            e.getValue(), type.getTypeAt(i))));
                        });
        return all;
    }

    // ---- writing -----------------------------------------------------------

    private static void create(Catalog catalog, Identifier id, String file) throws Exception {
        JsonNode spec = JSON.readTree(Files.readAllBytes(Paths.get(file)));
        Schema.Builder b = Schema.newBuilder();
        for (JsonNode f : spec.get("fields")) {
            b.column(f.get("name").asText(), DataTypeJsonParser.parseDataType(f.get("type")));
        }
        b.partitionKeys(strings(spec.get("partitionKeys")));
        b.primaryKey(strings(spec.get("primaryKeys")));
        JsonNode options = spec.get("options");
        if (options != null) {
            options.fields()
                    .forEachRemaining(e -> b.option(e.getKey(), e.getValue().asText()));
        }
        catalog.createDatabase(id.getDatabaseName(), true);
        catalog.createTable(id, b.build(), true);
    }

    private static List<String> strings(JsonNode array) {
        List<String> all = new ArrayList<>();
        if (array != null) {
            array.forEach(n -> all.add(n.asText()));
        }
        return all;
    }

    private static Map<String, String> partition(String json) throws Exception {
        Map<String, String> p = new HashMap<>();
        if (json != null) {
            JSON.readTree(json)
                    .fields()
                    .forEachRemaining(e -> p.put(e.getKey(), e.getValue().asText()));
        }
        return p;
    }

    private Prepared prepare(FileStoreTable table, Map<String, String> o, Map<String, String> over)
            throws Exception {
        Prepared p = new Prepared();
        p.table = table;
        p.user = o.getOrDefault("user", java.util.UUID.randomUUID().toString());
        p.identifier = Long.parseLong(o.getOrDefault("identifier", "" + Long.MAX_VALUE));
        p.write = table.newWrite(p.user);
        p.write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
        if (over != null) {
            p.write.withIgnorePreviousFiles(true);
        }
        try (BufferedReader in = Files.newBufferedReader(Paths.get(need(o, "rows")))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.isEmpty()) {
                    continue;
                }
                JsonNode node = JSON.readTree(line);
                GenericRow row = Notation.parseRow(node, table.rowType());
                if (node.has("_kind")) {
                    row.setRowKind(RowKind.fromShortString(node.get("_kind").asText()));
                }
                p.write.write(row);
            }
        }
        p.messages = p.write.prepareCommit(true, p.identifier);
        return p;
    }

    private String write(FileStoreTable table, Map<String, String> o, Map<String, String> over)
            throws Exception {
        return commit(prepare(table, o, over), over);
    }

    private String publish(String name) throws Exception {
        Prepared p = prepared.remove(name);
        if (p == null) {
            throw new IllegalArgumentException("nothing prepared under the name " + name);
        }
        return commit(p, null);
    }

    private static String commit(Prepared p, Map<String, String> over) throws Exception {
        try (TableCommitImpl commit = p.table.newCommit(p.user)) {
            if (over != null) {
                commit.withOverwrite(over);
            }
            commit.commit(p.identifier, p.messages);
        } finally {
            p.write.close();
        }
        return latest(p.table);
    }

    private static String latest(FileStoreTable table) {
        return "" + table.snapshotManager().latestSnapshotIdFromFileSystem();
    }

    private String compact(FileStoreTable table, Map<String, String> o) throws Exception {
        // Tables that are set to write-only leave compaction to a job like this one.
        table = table.copy(Collections.singletonMap("write-only", "false"));
        Prepared p = new Prepared();
        p.table = table;
        p.user = o.getOrDefault("user", java.util.UUID.randomUUID().toString());
        p.identifier = Long.parseLong(o.getOrDefault("identifier", "" + Long.MAX_VALUE));
        p.write = table.newWrite(p.user);
        p.write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
        if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            p.messages = new ArrayList<>();
            for (AppendCompactTask t : new AppendCompactCoordinator(table, false).run()) {
                p.messages.add(t.doCompact(table, (BaseAppendFileStoreWrite) p.write.getWrite()));
            }
        } else {
            for (BucketEntry e : table.newSnapshotReader().bucketEntries()) {
                p.write.compact(e.partition(), e.bucket(), true);
            }
            p.messages = p.write.prepareCommit(true, p.identifier);
        }
        return commit(p, null);
    }

    // ---- schema ------------------------------------------------------------

    private static void alter(Catalog catalog, Identifier id, String json) throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        for (JsonNode c : JSON.readTree(json)) {
            if (c.has("add")) {
                changes.add(
                        SchemaChange.addColumn(
                                c.get("add").asText(),
                                DataTypeJsonParser.parseDataType(c.get("type"))));
            } else if (c.has("drop")) {
                changes.add(SchemaChange.dropColumn(c.get("drop").asText()));
            } else if (c.has("rename")) {
                changes.add(
                        SchemaChange.renameColumn(c.get("rename").asText(), c.get("to").asText()));
            } else if (c.has("cast")) {
                changes.add(
                        SchemaChange.updateColumnType(
                                c.get("cast").asText(),
                                DataTypeJsonParser.parseDataType(c.get("type"))));
            } else {
                changes.add(
                        SchemaChange.setOption(c.get("set").asText(), c.get("value").asText()));
            }
        }
        catalog.alterTable(id, changes, false);
    }
}
