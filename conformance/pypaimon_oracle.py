"""pypaimon as an outside judge of what we write, and as the writer of what we must read.

    pypaimon_oracle.py COMMAND --warehouse W --table db.t ...

    dump      [--snapshot N] [--columns a,b]            rows as JSON lines
    create    --schema SCHEMA.json                      no snapshot
    write     [--schema SCHEMA.json] --rows FILE.jsonl  one commit; creates the table when it is missing
    overwrite --rows FILE.jsonl [--partition JSON]      whole table, or the partition given
    prepare   --rows FILE.jsonl --name X                files written, nothing published
    publish   --name X                                  commits what prepare left
    rollback  --to N
    serve                                               one JSON array of such arguments a line on standard input

Commands, answers and the notation of values are those of Oracle.java. pypaimon writes no
row kinds except through a table's rowkind.field, so rows other than +I and +U are refused.
"""

import decimal
import json
import math
import os
import sys
import warnings

import numpy as np
import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import (ArrayType, DataField, DataTypeParser, MapType, MultisetType,
                                        PyarrowFieldParser, RowType, reassign_field_id)
from pypaimon.schema.data_types import AtomicInteger

PREPARED = {}
decimal.getcontext().prec = 80  # DECIMAL(38, s) is wider than the default
PER_SECOND = {'s': 1, 'ms': 1000, 'us': 1000 ** 2, 'ns': 1000 ** 3}


# ---- values out -------------------------------------------------------------

def civil(days):
    """Proleptic Gregorian date of a day number; datetime.date ends at 9999."""
    return str(np.datetime64(int(days), 'D'))


def clock(seconds, fraction, precision):
    """fraction: nanoseconds."""
    text = '%02d:%02d:%02d' % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return text + '.' + ('%09d' % fraction)[:precision] if precision else text


def precision_of(type_name, default):
    return int(type_name.split('(')[1].split(')')[0]) if '(' in type_name else default


def instant(ticks, unit, precision, suffix):
    second, rest = divmod(ticks, PER_SECOND[unit])
    day, second = divmod(second, 86400)
    return civil(day) + ' ' + clock(second, rest * (10 ** 9 // PER_SECOND[unit]), precision) + suffix


def floating(x):
    if math.isnan(x):
        return 'NaN'
    if math.isinf(x):
        return 'Infinity' if x > 0 else '-Infinity'
    # str() is the shortest text that reads back, for 32 bits too; repr() names the type.
    return json.loads(str(x)) if float(x) != 0 else float(x)


def column(arr, t):
    """An Arrow array as a list of JSON values."""
    if isinstance(arr, pa.ChunkedArray):
        arr = arr.combine_chunks()
        if isinstance(arr, pa.ChunkedArray):
            arr = pa.concat_arrays(arr.chunks) if arr.num_chunks else pa.array([], arr.type)
    valid = arr.is_valid().to_pylist()
    return [v if ok else None for v, ok in zip(present(arr, t), valid)]


def present(arr, t):
    if isinstance(t, ArrayType):
        items = column(arr.values, t.element)
        ends = arr.offsets.to_pylist()
        return [items[a:b] for a, b in zip(ends, ends[1:])]
    if isinstance(t, (MapType, MultisetType)):
        key, value = (t.key, t.value) if isinstance(t, MapType) else (t.element, None)
        ends = arr.offsets.to_pylist()
        base, end = (ends[0], ends[-1]) if ends else (0, 0)
        keys = column(arr.keys.slice(base, end - base), key)
        values = arr.items.slice(base, end - base)
        values = column(values, value) if value is not None else values.to_pylist()
        return [[[k, v] for k, v in zip(keys[a - base:b - base], values[a - base:b - base])]
                for a, b in zip(ends, ends[1:])]
    if isinstance(t, RowType):
        members = [column(arr.field(i), f.type) for i, f in enumerate(t.fields)]
        names = [f.name for f in t.fields]
        return [dict(zip(names, row)) for row in zip(*members)] if members else [{}] * len(arr)
    name = t.type.upper()
    if pa.types.is_timestamp(arr.type):
        zoned = name.startswith('TIMESTAMP_LTZ') or 'LOCAL TIME ZONE' in name
        p, unit = precision_of(name, 6), arr.type.unit
        return [None if v is None else instant(v, unit, p, 'Z' if zoned else '')
                for v in arr.cast(pa.int64()).to_pylist()]
    if name.startswith('TIME'):
        p = precision_of(name, 0)
        return [None if v is None else clock(v // 1000, v % 1000 * 10 ** 6, p)
                for v in arr.cast(pa.time32('ms')).cast(pa.int32()).to_pylist()]
    if name == 'DATE':
        return [None if v is None else civil(v) for v in arr.cast(pa.int32()).to_pylist()]
    if name.startswith('DECIMAL'):
        scale = arr.type.scale
        return [None if v is None else format(v.quantize(decimal.Decimal(1).scaleb(-scale)), 'f')
                for v in arr.to_pylist()]
    if name == 'FLOAT':
        return [None if v is None else floating(np.float32(v)) for v in arr.to_pylist()]
    if name == 'DOUBLE':
        return [None if v is None else floating(v) for v in arr.to_pylist()]
    if pa.types.is_binary(arr.type) or pa.types.is_fixed_size_binary(arr.type) or pa.types.is_large_binary(arr.type):
        return [None if v is None else v.hex() for v in arr.to_pylist()]
    return arr.to_pylist()


# ---- values in --------------------------------------------------------------

def day_number(text):
    return int(np.datetime64(text, 'D').astype(np.int64))


def millis_of_day(text):
    h, m, s = (text + ':0:0').split(':')[:3]
    return (int(h) * 60 + int(m)) * 60000 + int(decimal.Decimal(s) * 1000)


def ticks(text, unit):
    date, time = text.rstrip('Z').split(' ')
    h, m, s = time.split(':')
    seconds = day_number(date) * 86400 + int(h) * 3600 + int(m) * 60
    return seconds * PER_SECOND[unit] + int(decimal.Decimal(s) * PER_SECOND[unit])


def parse(v, t, arrow):
    """A JSON value as what pa.array takes for the Arrow type."""
    if v is None:
        return None
    if isinstance(t, ArrayType):
        return [parse(x, t.element, arrow.value_type) for x in v]
    if isinstance(t, MapType):
        return [(parse(k, t.key, arrow.key_type), parse(x, t.value, arrow.item_type)) for k, x in v]
    if isinstance(t, RowType):
        return {f.name: parse(v.get(f.name), f.type, arrow.field(i).type) for i, f in enumerate(t.fields)}
    name = t.type.upper()
    if pa.types.is_timestamp(arrow):
        return ticks(v, arrow.unit)
    if name.startswith('TIME'):
        return millis_of_day(v)
    if name == 'DATE':
        return day_number(v)
    if name.startswith('DECIMAL'):
        return decimal.Decimal(v)
    if name in ('FLOAT', 'DOUBLE'):
        return float(v)
    if pa.types.is_binary(arrow):
        return bytes.fromhex(v)
    return v


def load(table, path):
    """The rows of a file as one batch in the table's schema."""
    with open(path, encoding='utf-8') as f:
        rows = [json.loads(line) for line in f if line.strip()]
    for r in rows:
        if r.get('_kind', '+I') not in ('+I', '+U'):
            raise ValueError('pypaimon writes no %s rows' % r['_kind'])
    schema = PyarrowFieldParser.from_paimon_schema(table.table_schema.fields)
    columns = [pa.array([parse(r.get(f.name), f.type, s.type) for r in rows], s.type)
               for f, s in zip(table.table_schema.fields, schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# ---- commands ---------------------------------------------------------------

def create(catalog, name, path):
    with open(path, encoding='utf-8') as f:
        spec = json.load(f)
    counter, fields = AtomicInteger(-1), []
    for f in spec['fields']:
        number = counter.increment_and_get()
        t = reassign_field_id(DataTypeParser.parse_data_type(f['type']), counter)
        fields.append(DataField(number, f['name'], t))
    catalog.create_database(name.split('.')[0], True)
    catalog.create_table(name, Schema(fields, spec.get('partitionKeys', []), spec.get('primaryKeys', []),
                                      spec.get('options', {})), True)


def dump(table, o, out):
    if 'snapshot' in o:
        table = table.copy({'scan.snapshot-id': o['snapshot']})
    rb = table.new_read_builder()
    if 'columns' in o:
        rb = rb.with_projection(o['columns'].split(','))
    rows = rb.new_read().to_arrow(rb.new_scan().plan().splits(), parallelism=1)
    types = {f.name: f.type for f in table.fields}
    names = rows.column_names
    columns = [column(rows.column(n), types[n]) for n in names]
    for values in zip(*columns):
        out.write(json.dumps(dict(zip(names, values)), ensure_ascii=False, separators=(',', ':')) + '\n')
    return str(rows.num_rows)


def prepare(table, o, overwrite):
    builder = table.new_batch_write_builder()
    if overwrite is not None:
        builder.overwrite(overwrite)
    writer = builder.new_write()
    batch = load(table, o['rows'])
    if batch.num_rows:
        writer.write_arrow_batch(batch)
    return table, builder, writer, writer.prepare_commit()


def publish(table, builder, writer, messages):
    commit = builder.new_commit()
    commit.commit(messages)
    writer.close()
    commit.close()
    latest = table.snapshot_manager().get_latest_snapshot()
    return str(latest.id if latest else 0)


def run(command, o, out):
    if command == 'publish':
        return publish(*PREPARED.pop(o['name']))
    catalog = CatalogFactory.create({'warehouse': o['warehouse']})
    if 'schema' in o:
        create(catalog, o['table'], o['schema'])
    if command == 'create':
        return ''
    table = catalog.get_table(o['table'])
    if command == 'dump':
        return dump(table, o, out)
    if command == 'write':
        return publish(*prepare(table, o, None))
    if command == 'overwrite':
        return publish(*prepare(table, o, json.loads(o.get('partition', '{}'))))
    if command == 'prepare':
        PREPARED[o['name']] = prepare(table, o, None)
        return ''
    if command == 'rollback':
        table.rollback_to(int(o['to']))
        return o['to']
    raise ValueError('no command ' + command)


def answer(args, out):
    try:
        options = {args[i][2:]: args[i + 1] for i in range(1, len(args) - 1, 2)}
        out.write('ok ' + run(args[0], options, out) + '\n')
        good = True
    except Exception as e:
        out.write('err ' + ' '.join(('%s: %s' % (type(e).__name__, e)).split()) + '\n')
        good = False
    out.flush()
    return good


def main():
    warnings.simplefilter('ignore')
    # Whatever a library prints must not get between the answers.
    out = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)
    if sys.argv[1:] == ['serve']:
        for line in sys.stdin:
            answer(json.loads(line), out)
        return 0
    return 0 if answer(sys.argv[1:], out) else 1


if __name__ == '__main__':
    sys.exit(main())
