import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/**
 * Rows as JSON text and back. One notation for both directions:
 *
 * <pre>
 *   INT family, FLOAT, DOUBLE   number; "NaN", "Infinity", "-Infinity"
 *   DECIMAL(p, s)               string with exactly s fraction digits
 *   CHAR, VARCHAR               string
 *   BINARY, VARBINARY           lower-case hex string
 *   DATE                        YYYY-MM-DD
 *   TIME(p)                     HH:MM:SS[.p digits]
 *   TIMESTAMP(p)                YYYY-MM-DD HH:MM:SS[.p digits], with local time zone: UTC and a final Z
 *   ARRAY                       array
 *   MAP, MULTISET               array of [key, value]
 *   ROW                         object
 * </pre>
 */
final class Notation {
    private Notation() {}

    // ---- out ---------------------------------------------------------------

    /** One row as a JSON object, fields in the order of the type. */
    static void row(StringBuilder out, InternalRow row, RowType type, String kind) {
        out.append('{');
        boolean first = true;
        if (kind != null) {
            out.append("\"_kind\":\"").append(kind).append('"');
            first = false;
        }
        List<DataField> fields = type.getFields();
        for (int i = 0; i < fields.size(); i++) {
            if (!first) {
                out.append(',');
            }
            first = false;
            string(out, fields.get(i).name());
            out.append(':');
            DataType t = fields.get(i).type();
            value(out, InternalRow.createFieldGetter(t, i).getFieldOrNull(row), t);
        }
        out.append('}');
    }

    private static void value(StringBuilder out, Object v, DataType t) {
        if (v == null) {
            out.append("null");
            return;
        }
        switch (t.getTypeRoot()) {
            case BOOLEAN:
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                out.append(v);
                return;
            case FLOAT:
                floating(out, (Float) v, new BigDecimalOf((Float) v, 9, Float.toString((Float) v)));
                return;
            case DOUBLE:
                floating(out, (Double) v, null);
                return;
            case DECIMAL:
                string(
                        out,
                        ((Decimal) v)
                                .toBigDecimal()
                                .setScale(((DecimalType) t).getScale())
                                .toPlainString());
                return;
            case CHAR:
            case VARCHAR:
                string(out, v.toString());
                return;
            case BINARY:
            case VARBINARY:
                hex(out, (byte[]) v);
                return;
            case DATE:
                out.append('"').append(LocalDate.ofEpochDay((Integer) v)).append('"');
                return;
            case TIME_WITHOUT_TIME_ZONE:
                out.append('"');
                time(
                        out,
                        LocalTime.ofNanoOfDay(((Integer) v) * 1_000_000L),
                        DataTypeChecks.getPrecision(t));
                out.append('"');
                return;
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                timestamp(out, (Timestamp) v, DataTypeChecks.getPrecision(t), "");
                return;
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                timestamp(out, (Timestamp) v, DataTypeChecks.getPrecision(t), "Z");
                return;
            case ARRAY:
                array(out, (InternalArray) v, ((ArrayType) t).getElementType());
                return;
            case MAP:
                map(out, (InternalMap) v, ((MapType) t).getKeyType(), ((MapType) t).getValueType());
                return;
            case MULTISET:
                map(out, (InternalMap) v, ((MultisetType) t).getElementType(), new IntType(false));
                return;
            case ROW:
                row(out, (InternalRow) v, (RowType) t, null);
                return;
            default:
                throw new UnsupportedOperationException("no notation for type " + t);
        }
    }

    /** The shortest decimal that reads back as a float (Float.toString of older JDKs is longer). */
    private static final class BigDecimalOf {
        final String text;

        BigDecimalOf(float f, int digits, String otherwise) {
            if (Float.isNaN(f) || Float.isInfinite(f) || f == 0) {
                text = otherwise;
                return;
            }
            BigDecimal exact = new BigDecimal(f);
            for (int p = 1; p < digits; p++) {
                BigDecimal r = exact.round(new MathContext(p, RoundingMode.HALF_EVEN));
                if (r.floatValue() == f) {
                    text = r.toString();
                    return;
                }
            }
            text = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN)).toString();
        }
    }

    private static void floating(StringBuilder out, double d, BigDecimalOf shortest) {
        if (Double.isNaN(d) || Double.isInfinite(d)) {
            out.append('"').append(d).append('"');
        } else {
            out.append(shortest == null ? Double.toString(d) : shortest.text);
        }
    }

    private static void array(StringBuilder out, InternalArray a, DataType element) {
        InternalArray.ElementGetter get = InternalArray.createElementGetter(element);
        out.append('[');
        for (int i = 0; i < a.size(); i++) {
            if (i > 0) {
                out.append(',');
            }
            value(out, get.getElementOrNull(a, i), element);
        }
        out.append(']');
    }

    private static void map(StringBuilder out, InternalMap m, DataType key, DataType value) {
        InternalArray.ElementGetter k = InternalArray.createElementGetter(key);
        InternalArray.ElementGetter v = InternalArray.createElementGetter(value);
        out.append('[');
        for (int i = 0; i < m.size(); i++) {
            out.append(i > 0 ? ",[" : "[");
            value(out, k.getElementOrNull(m.keyArray(), i), key);
            out.append(',');
            value(out, v.getElementOrNull(m.valueArray(), i), value);
            out.append(']');
        }
        out.append(']');
    }

    private static void timestamp(StringBuilder out, Timestamp ts, int precision, String suffix) {
        LocalDateTime t = ts.toLocalDateTime();
        out.append('"').append(t.toLocalDate()).append(' ');
        time(out, t.toLocalTime(), precision);
        out.append(suffix).append('"');
    }

    private static void time(StringBuilder out, LocalTime t, int precision) {
        out.append(String.format("%02d:%02d:%02d", t.getHour(), t.getMinute(), t.getSecond()));
        if (precision > 0) {
            out.append('.').append(String.format("%09d", t.getNano()), 0, precision);
        }
    }

    private static void hex(StringBuilder out, byte[] bytes) {
        out.append('"');
        for (byte b : bytes) {
            out.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        out.append('"');
    }

    static void string(StringBuilder out, String s) {
        out.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c == 0x7f || c == 0x2028 || c == 0x2029) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    // ---- in ----------------------------------------------------------------

    /** A row from its JSON object; a column that is not there is null. */
    static GenericRow parseRow(JsonNode node, RowType type) {
        List<DataField> fields = type.getFields();
        GenericRow row = new GenericRow(fields.size());
        for (int i = 0; i < fields.size(); i++) {
            row.setField(i, parse(node.get(fields.get(i).name()), fields.get(i).type()));
        }
        return row;
    }

    static Object parse(JsonNode n, DataType t) {
        if (n == null || n.isNull()) {
            return null;
        }
        switch (t.getTypeRoot()) {
            case BOOLEAN:
                return n.booleanValue();
            case TINYINT:
                return Byte.parseByte(n.asText());
            case SMALLINT:
                return Short.parseShort(n.asText());
            case INTEGER:
                return Integer.parseInt(n.asText());
            case BIGINT:
                return Long.parseLong(n.asText());
            case FLOAT:
                return Float.parseFloat(n.asText());
            case DOUBLE:
                return Double.parseDouble(n.asText());
            case DECIMAL:
                DecimalType d = (DecimalType) t;
                return Decimal.fromBigDecimal(
                        new BigDecimal(n.asText()), d.getPrecision(), d.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(n.asText());
            case BINARY:
            case VARBINARY:
                return unhex(n.asText());
            case DATE:
                return (int) LocalDate.parse(n.asText()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (LocalTime.parse(n.asText()).toNanoOfDay() / 1_000_000L);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                String text = n.asText().replace(' ', 'T');
                if (text.endsWith("Z")) {
                    text = text.substring(0, text.length() - 1);
                }
                Instant at = LocalDateTime.parse(text).toInstant(ZoneOffset.UTC);
                return Timestamp.fromInstant(at);
            case ARRAY:
                Object[] items = new Object[n.size()];
                for (int i = 0; i < items.length; i++) {
                    items[i] = parse(n.get(i), ((ArrayType) t).getElementType());
                }
                return new GenericArray(items);
            case MAP:
                return parseMap(n, ((MapType) t).getKeyType(), ((MapType) t).getValueType());
            case MULTISET:
                return parseMap(n, ((MultisetType) t).getElementType(), new IntType(false));
            case ROW:
                return parseRow(n, (RowType) t);
            default:
                throw new UnsupportedOperationException("no notation for type " + t);
        }
    }

    private static GenericMap parseMap(JsonNode pairs, DataType key, DataType value) {
        Map<Object, Object> m = new LinkedHashMap<>();
        for (JsonNode pair : pairs) {
            m.put(parse(pair.get(0), key), parse(pair.get(1), value));
        }
        return new GenericMap(m);
    }

    private static byte[] unhex(String s) {
        byte[] b = new byte[s.length() / 2];
        for (int i = 0; i < b.length; i++) {
            b[i] = (byte) Integer.parseInt(s.substring(2 * i, 2 * i + 2), 16);
        }
        return b;
    }
}
