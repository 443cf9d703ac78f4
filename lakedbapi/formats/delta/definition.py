"""A table's definition as protocol and metadata: of a new table, and of one that was altered."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakedbapi.errors import NotSupportedError, ProgrammingError
from lakedbapi.formats import keys
from lakedbapi.formats.delta import row_tracking
from lakedbapi.formats.delta.actions import Metadata, Protocol
from lakedbapi.formats.delta.clustering import FEATURE, check_sort_keys
from lakedbapi.formats.delta.features import reader_features
from lakedbapi.formats.delta.properties import (
    IN_COMMIT,
    IN_COMMIT_TIME,
    IN_COMMIT_VERSION,
    KEPT_BY_WRITERS,
    MAX_ID,
    check_properties,
    is_for_the_protocol,
)
from lakedbapi.formats.delta.schema import (
    EXPLICIT,
    GENERATED,
    HIGH_WATER_MARK,
    ID,
    IDENTITY,
    PHYSICAL_NAME,
    STEP,
    metadata_of,
    nodes,
    parse_schema,
    print_schema,
    type_name,
)
from lakedbapi.formats.delta.state import TableState
from lakedbapi.formats.delta.writer_features import (
    MODE,
    NEW_TABLE,
    WRITABLE,
    is_on,
    is_true,
    mapping_mode,
    required_features,
    with_features,
)
from lakedbapi.formats.properties import whole_number
from lakedbapi.formats.tree import is_visible
from lakedbapi.model.catalog import TableInfo
from lakedbapi.model.sql_types import spelled, sql_type
from lakedbapi.model.types import UNASSIGNED, Field, List, Map, Schema, Struct, Type, walk

CHECK = "delta.constraints."
VECTORS = "delta.enableDeletionVectors"
FEED = "delta.enableChangeDataFeed"
TYPE_CHANGES = "delta.typeChanges"
_OF_THE_FEED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
_OTHER_FORMATS = "delta.universalformat.enabledformats"

_INSTEAD = {
    "int128": "DECIMAL(38, 0)",
    "uint128": "VARCHAR",
    "uint8": "SMALLINT",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
    "time": "VARCHAR",
    "time_ns": "VARCHAR",
    "timetz": "VARCHAR",
    "timestamp_s": "TIMESTAMP",
    "timestamp_ms": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP",
    "timestamptz_ns": "TIMESTAMP WITH TIME ZONE",
    "interval": "VARCHAR",
    "json": "VARCHAR",
    "uuid": "VARCHAR",
    "geometry": "BLOB",
    "variant": "VARCHAR",
}
"""The type that holds the values of one that Delta does not have, or that cannot be written here."""


@dataclass(frozen=True)
class Definition:
    protocol: Protocol
    metadata: Metadata


def codec(properties: Mapping[str, str]) -> str:
    """How data files are compressed: `delta.parquet.compression.codec`, in the engine's word."""
    found = properties.get("delta.parquet.compression.codec", "snappy").casefold()
    return {"none": "uncompressed", "lz4": "lz4_raw"}.get(found, found)


def new_definition(table: TableInfo, physical: Mapping[int, str], now: int) -> Definition:
    """Of a table that is created. `physical` are the names that its fields have in files, if it maps columns."""
    properties = {VECTORS: "true", **table.properties}
    properties = row_tracking.with_columns(properties)
    metadata = Metadata(
        id=table.uuid or str(uuid.uuid4()),
        schema_string=_annotated(print_schema(table.schema), table, physical, None, {}),
        partition_columns=_partition_columns(table),
        configuration=_configuration(table, properties),
        description=table.comment,
        created_time=now,
    )
    needed = _needed(table, metadata)
    return Definition(with_features(NEW_TABLE, needed), metadata)


def changed_definition(
    base: TableState, table: TableInfo, physical: Mapping[int, str], marks: Mapping[str, int], restored: str | None
) -> Definition:
    """Of a table that was altered, or whose identity columns assigned values: `marks` are the furthest, by column.

    `restored` is the schema of the version that it returns to; values that were counted since are not given again.
    """
    metadata = base.metadata
    before = metadata.schema_string if restored is None else restored
    if restored is not None:
        marks = {**_marks(metadata, table.schema), **marks}
    schema_string = _annotated(print_schema(table.schema, before), table, physical, before, marks)
    if json.loads(schema_string) == json.loads(metadata.schema_string):
        schema_string = metadata.schema_string
    changed = replace(
        metadata,
        schema_string=schema_string,
        partition_columns=_partition_columns(table),
        configuration=_configuration(table, row_tracking.with_columns(table.properties)),
        description=table.comment,
    )
    needed = _needed(table, changed)
    return Definition(with_features(base.protocol, needed), changed)


def _needed(table: TableInfo, metadata: Metadata) -> frozenset[str]:
    needed = required_features(table.schema, {**metadata.configuration, **table.properties})
    return needed | {FEATURE} if table.sorting else needed


def _marks(metadata: Metadata, schema: Schema) -> dict[str, int]:
    """The furthest values of identity columns, by what they are called in `schema`."""
    own = metadata_of(metadata.schema_string)
    is_mapped = mapping_mode(metadata.configuration) != "none"
    names = {field.id if is_mapped else field.name: field.name for field in schema.fields}
    return {
        names[key]: own[field.id][HIGH_WATER_MARK]
        for field in parse_schema(metadata.schema_string).fields
        if (key := field.id if is_mapped else field.name) in names and HIGH_WATER_MARK in own[field.id]
    }


def with_time_in_commits(definition: Definition, base: TableState, time: int) -> Definition:
    """The definition that the next version gives a table that is `base`, with what readers need to find the times of
    commits before those that have their own in them (protocol, "In-Commit Timestamps"). `time` in milliseconds."""
    configuration = {
        name: value
        for name, value in definition.metadata.configuration.items()
        if name not in (IN_COMMIT_VERSION, IN_COMMIT_TIME)
    }
    if is_on(definition.protocol, configuration, IN_COMMIT):
        before = base.metadata.configuration
        if is_on(base.protocol, before, IN_COMMIT):
            since = {name: before.get(name) for name in (IN_COMMIT_VERSION, IN_COMMIT_TIME)}
        else:
            since = {IN_COMMIT_VERSION: str(base.version + 1), IN_COMMIT_TIME: str(time)}
        configuration |= {name: value for name, value in since.items() if value is not None}
    if configuration == definition.metadata.configuration:
        return definition
    return Definition(definition.protocol, replace(definition.metadata, configuration=configuration))


def _partition_columns(table: TableInfo) -> tuple[str, ...]:
    by_id = {field.id: field.name for field in table.schema.fields}
    return () if table.partitioning is None else tuple(by_id[key.field_id] for key in table.partitioning.fields)


def given_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a table's properties that a user gives, rather than a writer or, as part of a constraint, another
    statement."""
    kept = (keys.PROPERTY, *KEPT_BY_WRITERS, *row_tracking.COLUMNS.values())
    return {n: value for n, value in properties.items() if n not in kept and not n.casefold().startswith(CHECK)}


def _configuration(table: TableInfo, properties: dict[str, str]) -> dict[str, str]:
    """The properties with the table's constraints in place of those that they had."""
    found = {
        name: value
        for name, value in properties.items()
        if not name.casefold().startswith(CHECK)
        and name not in (keys.PROPERTY, MAX_ID)
        and not is_for_the_protocol(name)
    }
    for constraint in table.constraints:
        if constraint.kind == "check":
            found[f"{CHECK}{constraint.name}"] = constraint.expression or ""
    stated = keys.print_keys(table.constraints)
    if stated is not None:
        found[keys.PROPERTY] = stated
    if mapping_mode(properties) != "none":
        highest = max((field.id for field in walk(table.schema.fields)), default=0)
        found[MAX_ID] = str(max(highest, whole_number(properties, MAX_ID, 0)))
    return found


def _annotated(
    schema_string: str,
    table: TableInfo,
    physical: Mapping[int, str],
    base: str | None,
    marks: Mapping[str, int],
) -> str:
    """`schema_string` with what the fields of `table` have beyond a name, a type, a comment and a default."""
    mapped = mapping_mode(table.properties) != "none"
    before = {} if base is None else {field.id: field for field in walk(parse_schema(base).fields)}
    tree = json.loads(schema_string)
    for field, raw in zip(walk(table.schema.fields), nodes(tree), strict=True):
        if "name" not in raw:
            continue
        added: dict[str, Any] = raw.setdefault("metadata", {})
        if mapped:
            added.setdefault(ID, field.id)
            added.setdefault(PHYSICAL_NAME, physical.get(field.id, field.name))
        if field.identity and IDENTITY not in added:
            added |= {IDENTITY: field.identity.start, STEP: field.identity.step, EXPLICIT: not field.identity.always}
        if field.generated is not None:
            added[GENERATED] = field.generated
        if field.name in marks and field.identity:
            added[HIGH_WATER_MARK] = marks[field.name]
        old = before.get(field.id)
        if old is not None:
            changes = [*added.get(TYPE_CHANGES, ()), *_type_changes(old.type, field.type, ())]
            if changes:
                added[TYPE_CHANGES] = changes
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _type_changes(old: Type, new: Type, path: tuple[str, ...]) -> list[dict[str, str]]:
    """The changes of a field's type, those of elements, keys and values with their path; fields of structs tell of
    their own."""
    if isinstance(old, Struct) or isinstance(new, Struct):
        return []
    if isinstance(old, List) and isinstance(new, List):
        return _type_changes(old.element.type, new.element.type, (*path, "element"))
    if isinstance(old, Map) and isinstance(new, Map):
        return [
            *_type_changes(old.key.type, new.key.type, (*path, "key")),
            *_type_changes(old.value.type, new.value.type, (*path, "value")),
        ]
    if old == new:
        return []
    change = {"fromType": type_name(old), "toType": type_name(new)}
    return [{**change, "fieldPath": ".".join(path)} if path else change]


def check_directory(kind: str, name: str) -> None:
    """NotSupportedError for a name of a `kind` whose directory would not be found, or lie outside of the catalog."""
    if not is_visible(name):
        raise NotSupportedError(
            f"{kind} {name!r} cannot be a directory of Delta tables: choose a name without '/' and '=' that does not "
            "begin with '.' or '_'"
        )


def check_new(table: TableInfo) -> None:
    """Errors, each with the way out, for what a Delta table cannot be."""
    check_properties(table.name, table.properties)
    _check_features(table.name, table.properties)
    _check_common(table)
    _check_partitioning(table)


def check_altered(base: TableState, old: TableInfo, new: TableInfo) -> None:
    """As `check_new`, of changes to a table that is there."""
    own = base.metadata.configuration
    given = {name: value for name, value in new.properties.items() if own.get(name) != value}
    check_properties(new.name, given)
    _check_features(new.name, given)
    _check_common(new)
    if old.name != new.name or old.schema_id != new.schema_id:
        raise NotSupportedError(
            f"Delta table {old.name!r} is its directory and cannot be renamed in one step: "
            f"CREATE TABLE {spelled(new.name)} AS SELECT * FROM {spelled(old.name)}, then DROP TABLE "
            f"{spelled(old.name)}"
        )
    if old.partitioning != new.partitioning:
        raise NotSupportedError(
            f"the partitioning of Delta table {old.name!r} cannot change: make a new table from it with CREATE TABLE …"
            " PARTITIONED BY … AS SELECT"
        )
    modes = mapping_mode(old.properties), mapping_mode(new.properties)
    if modes[0] != modes[1] and modes != ("none", "name"):
        raise NotSupportedError(
            f"{MODE} of Delta table {old.name!r} cannot change from {modes[0]} to {modes[1]}: only from none to name; "
            f"CREATE TABLE … WITH ('{MODE}' = '{modes[1]}') AS SELECT * FROM {spelled(old.name)} makes a table with it"
        )
    if modes[0] != modes[1] and old.schema != new.schema:
        raise NotSupportedError(f"set {MODE} of Delta table {old.name!r} first, then change its columns")
    before = {field.id: field for field in walk(old.schema.fields)}
    after = {field.id: field for field in walk(new.schema.fields)}
    moved = [field.name for id, field in before.items() if id not in after or after[id].name != field.name]
    if moved and modes[1] == "none":
        raise NotSupportedError(
            f"column {moved[0]!r} of Delta table {old.name!r} cannot be renamed or dropped, since data files find their"
            f" columns by name: ALTER TABLE {spelled(old.name)} SET ('{MODE}' = 'name') first, which needs newer "
            "readers"
        )
    _check_unneeded(old, new, moved)
    for id, field in after.items():
        known = before.get(id)
        if known is None and field.initial_default is not None:
            raise NotSupportedError(
                f"column {field.name!r} cannot be added to Delta table {old.name!r} with a default, which its rows "
                "would not have: add it without, UPDATE it, then ALTER COLUMN … SET DEFAULT"
            )
        if known is not None and _is_leaf(field) and known.type != field.type:
            _check_widened(base, old, new, field)


def _check_unneeded(old: TableInfo, new: TableInfo, moved: Sequence[str]) -> None:
    """NotSupportedError for columns that expressions of the table name, and for conditions of columns that go."""
    needed = [field.name for field in old.schema.fields if field.generated and names_one_of(field.generated, moved)]
    if needed:
        raise NotSupportedError(
            f"column {moved[0]!r} of Delta table {old.name!r} cannot be renamed or dropped: {needed[0]!r} is generated "
            f"from it; drop {needed[0]!r} first"
        )
    checks = [c for c in old.constraints if c.expression and c.kind != "void" and names_one_of(c.expression, moved)]
    if checks:
        raise NotSupportedError(
            f"column {moved[0]!r} of Delta table {old.name!r} cannot be renamed or dropped: the constraint "
            f"{checks[0].name!r} ({checks[0].expression}) needs it; ALTER TABLE {spelled(old.name)} "
            "DROP CONSTRAINT first"
        )
    if [c for c in old.constraints if c.kind == "invariant"] != [c for c in new.constraints if c.kind == "invariant"]:
        raise NotSupportedError(
            f"an invariant of Delta table {old.name!r} belongs to the definition of its column, and cannot be dropped "
            "here"
        )


def names_one_of(expression: str, columns: Sequence[str]) -> bool:
    """Whether an expression of SQL may name one of the columns."""
    words = {word.casefold() for word in re.findall(r"\w+", expression)}
    return any(set(re.findall(r"\w+", column.casefold())) <= words for column in columns)


def _check_widened(base: TableState, old: TableInfo, new: TableInfo, field: Field) -> None:
    preview = "typeWidening-preview" in reader_features(base.protocol)
    if preview:
        name = spelled(field.name)
        raise NotSupportedError(
            f"column {field.name!r} of Delta table {old.name!r} cannot be widened: the table has only the preview of"
            f" the feature typeWidening; CREATE TABLE … AS SELECT * REPLACE (CAST({name} AS …) AS {name}) "
            f"FROM {spelled(old.name)} makes a wider one"
        )
    if not is_true(new.properties, "delta.enableTypeWidening"):
        raise NotSupportedError(
            f"column {field.name!r} of Delta table {old.name!r} cannot be widened: ALTER TABLE {spelled(old.name)} SET "
            "('delta.enableTypeWidening' = 'true') first, which needs newer readers"
        )


def _is_leaf(field: Field) -> bool:
    return not isinstance(field.type, (Struct, List, Map))


def _check_features(table: str, properties: Mapping[str, str]) -> None:
    """NotSupportedError for properties that ask for what no commit could be made with."""
    for name, value in properties.items():
        missing = sorted(required_features(Schema(()), {name: value}) - WRITABLE)
        if missing:
            raise NotSupportedError(
                f"Delta table {table!r}: {name} asks for {missing[0]}, a feature that is not written here; leave it out"
            )
        if name.casefold() == _OTHER_FORMATS and value.strip():
            raise NotSupportedError(
                f"Delta table {table!r}: {name} asks for metadata of {value}, which is not written here; leave it out"
            )


def _check_common(table: TableInfo) -> None:
    if is_true(table.properties, row_tracking.ENABLED) and is_true(table.properties, row_tracking.SUSPENDED):
        raise ProgrammingError(
            f"Delta table {table.name!r} cannot have {row_tracking.ENABLED} and {row_tracking.SUSPENDED} at once: set "
            "one of them to false"
        )
    for field in walk(table.schema.fields):
        _check_type(table, field)
    taken = [field.name for field in table.schema.fields if field.name.casefold() in _OF_THE_FEED]
    if taken and is_true(table.properties, FEED):
        raise NotSupportedError(
            f"Delta table {table.name!r} cannot have {FEED} and the column {taken[0]!r}, which the change feed has of "
            "its own: give the column another name"
        )
    check_sort_keys(table)
    for name in table.properties:
        if name.casefold().startswith(CHECK):
            raise ProgrammingError(f"{name} cannot be set as a property: ALTER TABLE … ADD CONSTRAINT … CHECK (…)")


def _check_type(table: TableInfo, field: Field) -> None:
    if isinstance(field.type, (Struct, List, Map)):
        return
    name = getattr(field.type, "name", "")
    if name in _INSTEAD:
        raise NotSupportedError(
            f"column {field.name!r} of {table.name!r}: Delta tables cannot hold {sql_type(field.type)} here; use "
            f"{_INSTEAD[name]}, in CREATE TABLE AS with CAST({field.name} AS {_INSTEAD[name]})"
        )


def _check_partitioning(table: TableInfo) -> None:
    if table.partitioning is None:
        return
    by_id = {field.id: field for field in table.schema.fields}
    for key in table.partitioning.fields:
        if type_name(by_id[key.field_id].type) == "binary":
            raise NotSupportedError(
                f"Delta table {table.name!r} cannot be partitioned by {by_id[key.field_id].name!r}: a BLOB has no text "
                "that all readers agree on; partition it by a text"
            )
    if len(table.partitioning.fields) == len(table.schema.fields):
        raise NotSupportedError(
            f"Delta table {table.name!r} cannot be partitioned by all of its columns: its files would have none left; "
            "leave one out of PARTITIONED BY"
        )


def numbered(schema: Schema, highest: int) -> Schema:
    """The schema with ids for the fields that have none, after `highest`."""
    last = [max([highest, *(field.id for field in walk(schema.fields))])]
    return Schema(tuple(_numbered(field, last) for field in schema.fields))


def _numbered(field: Field, last: list[int]) -> Field:
    id = field.id
    if id == UNASSIGNED:
        last[0] += 1
        id = last[0]
    type = field.type
    if isinstance(type, Struct):
        type = Struct(tuple(_numbered(child, last) for child in type.fields))
    elif isinstance(type, List):
        type = List(_numbered(type.element, last))
    elif isinstance(type, Map):
        type = Map(_numbered(type.key, last), _numbered(type.value, last))
    return replace(field, id=id, type=type)
