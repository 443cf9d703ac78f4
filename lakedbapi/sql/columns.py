"""The parts of a table's definition: columns, constraints, partition and sort keys, properties."""

from __future__ import annotations

from lakedbapi.errors import NotSupportedError
from lakedbapi.model.catalog import Constraint
from lakedbapi.model.types import Field, Identity
from lakedbapi.sql.reader import Reader
from lakedbapi.sql.statements import PartitionKey, SortKey
from lakedbapi.sql.tokens import NUMBER, PARAMETER
from lakedbapi.sql.types import read_type

TABLE_CONSTRAINTS = frozenset(("primary", "unique", "check", "foreign"))
_COLUMN_CLAUSES = (
    ("not", "null"),
    ("null",),
    ("default",),
    ("primary", "key"),
    ("unique",),
    ("references",),
    ("check",),
    ("constraint",),
    ("generated",),
    ("autoincrement",),
    ("auto_increment",),
    ("comment",),
    ("collate",),
)
_TRANSFORMS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
"""Spark's spellings."""


def read_column(reader: Reader) -> tuple[Field, tuple[Constraint, ...]]:
    """`name TYPE [NOT NULL] [DEFAULT expression] [PRIMARY KEY] …`: the field, and its constraints as those of the
    table."""
    name = reader.identifier("a column name")
    type = read_type(reader)
    nullable = True
    identity: Identity | None = None
    default = comment = generated = None
    constraints: list[Constraint] = []
    while not reader.done:
        label = reader.identifier("the name of a constraint") if reader.accept("constraint") else None
        if reader.accept("not", "null"):
            nullable = False
        elif reader.accept("null"):
            pass
        elif reader.accept("default"):
            default = read_default(reader)
        elif reader.at("generated", "always", "as", "("):
            reader.accept("generated", "always", "as")
            generated = _constant_text(reader.bracketed())
        elif reader.accept("generated"):
            identity = _read_identity(reader)
        elif reader.accept("autoincrement") or reader.accept("auto_increment"):
            identity = Identity()
        elif reader.accept("comment"):
            comment = reader.string()
        else:
            constraints.append(_column_constraint(reader, name, label))
            nullable = nullable and constraints[-1].kind != "primary key"
    field = Field(
        name, type, nullable=nullable, default=default, comment=comment, identity=identity, generated=generated
    )
    return field, tuple(constraints)


def read_default(reader: Reader) -> str | None:
    """The text of a DEFAULT expression; None for DEFAULT NULL."""
    start = reader.position
    if reader.done:
        raise reader.error("expected the default's value")
    reader.position += 0 if reader.peek().key in ("(", "[", "{", "case") else 1
    reader.skip_to(lambda: _at_column_clause(reader))
    text = _constant_text(reader.part(start, reader.position))
    return None if text.casefold() == "null" else text


def _at_column_clause(reader: Reader) -> bool:
    is_test = reader.position > 0 and reader.tokens[reader.position - 1].key in ("is", "not")
    return not is_test and any(reader.at(*clause) for clause in _COLUMN_CLAUSES)


def _constant_text(reader: Reader) -> str:
    """The text of an expression that is kept with the table, so that it cannot hold parameters."""
    parameter = next((token for token in reader.tokens if token.kind == PARAMETER), None)
    if parameter is not None:
        raise reader.error("the definition of a table cannot hold parameters", parameter)
    return reader.rest


def _read_identity(reader: Reader) -> Identity:
    """`{ALWAYS | BY DEFAULT} AS IDENTITY [([START WITH n] [INCREMENT BY n])]`."""
    always = reader.accept("always", "as", "identity")
    if not always and not reader.accept("by", "default", "as", "identity"):
        raise reader.error("expected ALWAYS AS IDENTITY, BY DEFAULT AS IDENTITY or ALWAYS AS (…)")
    numbers = {"start": 1, "increment": 1}
    if reader.at("("):
        options = reader.bracketed()
        while not options.done:
            word = next((word for word in numbers if options.accept(word)), None)
            if word is None:
                raise options.error("expected START WITH or INCREMENT BY")
            options.accept("with" if word == "start" else "by")
            numbers[word] = _whole_number(options)
            options.accept(",")
    if not numbers["increment"]:
        raise reader.error("an identity column cannot count in steps of 0")
    return Identity(numbers["start"], numbers["increment"], always)


def _whole_number(reader: Reader) -> int:
    sign = -1 if reader.accept("-") else 1
    token = reader.next()
    if token.kind != NUMBER or not token.value.isdigit() or int(token.value) >= 1 << 63:
        reader.position -= 1
        raise reader.error("expected a whole number")
    return sign * int(token.value)


def _column_constraint(reader: Reader, column: str, label: str | None) -> Constraint:
    if reader.accept("primary", "key"):
        return Constraint("primary key", label, (column,))
    if reader.accept("unique"):
        return Constraint("unique", label, (column,))
    if reader.at("check"):
        return _check(reader, label)
    if reader.at("references"):
        return _references(reader, label, (column,))
    if reader.at("collate"):
        raise NotSupportedError("COLLATE on a column is not supported: put COLLATE into the query")
    if reader.at("as") or reader.at("using"):
        raise NotSupportedError("generated columns are not supported: compute the column in a view")
    raise reader.error("expected NOT NULL, DEFAULT, PRIMARY KEY, UNIQUE, REFERENCES, CHECK or GENERATED … AS IDENTITY")


def read_constraint(reader: Reader) -> Constraint:
    """`[CONSTRAINT name] PRIMARY KEY (…) | UNIQUE (…) | CHECK (…) | FOREIGN KEY (…) REFERENCES t (…)`."""
    label = reader.identifier("the name of a constraint") if reader.accept("constraint") else None
    if reader.accept("primary", "key"):
        return Constraint("primary key", label, reader.column_list())
    if reader.accept("unique"):
        return Constraint("unique", label, reader.column_list())
    if reader.at("check"):
        return _check(reader, label)
    if reader.accept("foreign", "key"):
        return _references(reader, label, reader.column_list())
    raise reader.error("expected PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY")


def _check(reader: Reader, label: str | None) -> Constraint:
    reader.expect("check")
    content = reader.bracketed()
    if content.done:
        raise content.error("expected a condition")
    return Constraint("check", label, expression=_constant_text(content))


def _references(reader: Reader, label: str | None, columns: tuple[str, ...]) -> Constraint:
    reader.expect("references")
    referred = reader.name("the name of a table").parts
    referred_columns = reader.column_list() if reader.at("(") else ()
    while reader.accept("on"):
        if not (reader.accept("delete") or reader.accept("update")):
            raise reader.error("expected DELETE or UPDATE")
        if not any(
            reader.accept(*a)
            for a in (("no", "action"), ("restrict",), ("cascade",), ("set", "null"), ("set", "default"))
        ):
            raise reader.error("expected NO ACTION, RESTRICT, CASCADE, SET NULL or SET DEFAULT")
    return Constraint("foreign key", label, columns, referred, referred_columns)


def read_partition_keys(reader: Reader) -> tuple[PartitionKey, ...]:
    """`(k, year(ts), bucket(4, x))`, with or without the parentheses."""
    return tuple(_partition_key(item) for item in _list(reader).items())


def _partition_key(reader: Reader) -> PartitionKey:
    word = reader.identifier("a column or a transform of one")
    if reader.done:
        return PartitionKey(word, "identity")
    transform, column, number = word.casefold(), None, None
    arguments = reader.bracketed()
    reader.expect_end()
    for item in arguments.items():
        if item.peek().kind == NUMBER and item.peek().value.isdigit() and number is None:
            number = int(item.next().value)
        elif column is None:
            column = item.identifier("a column name")
        item.expect_end()
    if column is None:
        raise arguments.error(f"the transform {transform} needs a column")
    transform = _TRANSFORMS.get(transform, transform)
    return PartitionKey(column, transform if number is None else f"{transform}({number})")


def read_sort_keys(reader: Reader) -> tuple[SortKey, ...]:
    """`(a, lower(b) DESC NULLS FIRST)`, with or without the parentheses."""
    return tuple(_sort_key(item) for item in _list(reader).items())


def _sort_key(reader: Reader) -> SortKey:
    """Without NULLS FIRST, NULLs come last."""
    expression = _constant_text(reader.until(("asc",), ("desc",), ("nulls", "first"), ("nulls", "last")))
    descending = reader.accept("desc")
    reader.accept("asc")
    nulls_first = reader.accept("nulls", "first")
    reader.accept("nulls", "last")
    reader.expect_end()
    return SortKey(expression, descending, nulls_first)


def _list(reader: Reader) -> Reader:
    """The content of the parentheses that follow; without parentheses, all up to the next clause."""
    content = (
        reader.bracketed()
        if reader.at("(")
        else reader.until(("as",), ("with",), ("sorted",), ("cluster",), ("partitioned",), ("tblproperties",))
    )
    if content.done:
        raise content.error("expected at least one key")
    return content


def read_properties(reader: Reader) -> tuple[tuple[str, str], ...]:
    """`(name = 'value', 'other.name' = 5)`."""
    return tuple(_property(item) for item in reader.bracketed().items())


def _property(reader: Reader) -> tuple[str, str]:
    name = read_property_name(reader)
    if not reader.accept("=") and not reader.accept("=>"):
        raise reader.error("expected name = value")
    value = reader.constant()
    reader.expect_end()
    return name, value


def read_property_name(reader: Reader) -> str:
    """A string, or a path of identifiers."""
    token = reader.peek()
    return reader.string() if not token.is_identifier else ".".join(reader.path("the name of a property"))
