"""SQL text of queries and DML."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import sqlalchemy
from sqlalchemy import exc
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import coercions, compiler, elements, expression

from sqlalchemy_lake.merge import Merge, MergeAction
from sqlalchemy_lake.timetravel import AsOf

RESERVED_WORDS = frozenset(
    "all analyse analyze and any array as asc_p asc asymmetric both case cast check collate column constraint create "
    "default deferrable desc describe distinct do else end except false fetch for foreign from glob group having in "
    "initially intersect into is isnull lambda lateral leading like ilike limit not notnull null offset on only or "
    "order pivot pivot_longer pivot_wider placing primary qualify references returning select show similar some "
    "summarize symmetric table then to trailing true union unique unpivot using variadic when where window with left "
    "right full inner outer cross natural join semi anti asof positional at values row struct map overlaps "
    "tablesample".split()
)


class LakeIdentifierPreparer(compiler.IdentifierPreparer):
    """Names keep their case and are found in any; quotes stand only where they must."""

    reserved_words = RESERVED_WORDS

    def format_schema(self, name: str) -> str:
        """A dotted, unquoted schema name is `catalog.schema`."""
        return self.quote_schema(name)

    def quote_schema(self, schema: str, force: Any = None) -> str:
        if isinstance(schema, elements.quoted_name) and schema.quote:
            return str(self.quote(schema))
        return ".".join(self.quote(part) for part in str(schema).split("."))


class LakeCompiler(compiler.SQLCompiler):
    def visit_lake_as_of(
        self, as_of: AsOf, asfrom: bool = False, ashint: bool = False, from_linter: Any = None, **kw: Any
    ) -> str:
        """`t FOR VERSION AS OF ? AS t_1`: the one spelling that tools which print SQL anew do not break."""
        kw.pop("enclosing_alias", None)
        if not (asfrom or ashint):
            return str(as_of.element._compiler_dispatch(self, **kw))
        truncated = isinstance(as_of.name, elements._truncated_label)
        name = self._truncated_identifier("alias", as_of.name) if truncated else as_of.name
        shown = self.preparer.format_alias(as_of, name)
        if ashint:
            return shown
        if from_linter:
            from_linter.froms[getattr(as_of, "_de_clone", lambda: as_of)()] = name
        table = as_of.element._compiler_dispatch(self, asfrom=True, **kw)
        return f"{table} FOR {as_of.kind} AS OF {self.process(as_of.point, **kw)} AS {shown}"

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """Dates and times as literals of their type: a plain string would be text to some functions."""
        if isinstance(value, (date, time)) and not isinstance(type_, sqltypes.TypeDecorator):
            return _temporal_literal(value, type_)
        return str(super().render_literal_value(value, type_))

    def get_from_hint_text(self, table: Any, text: str) -> str:
        return text

    def visit_lake_merge(self, merge: Merge, **kw: Any) -> str:
        if merge.source is None or not merge.actions:
            raise exc.CompileError("MERGE needs using(source, on) and at least one when_…() clause")
        self.stack.append({"correlate_froms": set(), "asfrom_froms": set(), "selectable": merge})
        try:
            froms = {**kw, "asfrom": True}
            text = f"MERGE INTO {merge.target._compiler_dispatch(self, **froms)}"
            text += f" USING {merge.source._compiler_dispatch(self, **froms)}"
            text += f" ON {self.process(merge.condition, **kw)}"
            for action in merge.actions:
                text += f" {self.process(action, **kw)}"
            if merge.returned:
                columns = expression._select_iterables(merge.returned)
                labelled = (self._label_select_column(None, column, True, False, {}) for column in columns)
                text += f" RETURNING {', '.join(labelled)}"
            return text
        finally:
            self.stack.pop()

    def visit_lake_merge_action(self, clause: MergeAction, **kw: Any) -> str:
        text = f"WHEN {clause.when}"
        if clause.condition is not None:
            text += f" AND {self.process(clause.condition, **kw)}"
        names = [self.preparer.quote(column.name) for column, _ in clause.values]
        values = [self.process(value.self_group(), **kw) for _, value in clause.values]
        if clause.action == "UPDATE":
            pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            return f"{text} THEN UPDATE SET {pairs}"
        if clause.action == "INSERT":
            return f"{text} THEN INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
        return f"{text} THEN {'DO NOTHING' if clause.action == 'NOTHING' else clause.action}"

    def visit_on_conflict_do_nothing(self, clause: Any, **kw: Any) -> str:
        return f"ON CONFLICT{self._conflict_target(clause, **kw)} DO NOTHING"

    def visit_on_conflict_do_update(self, clause: Any, **kw: Any) -> str:
        table = self.stack[-1]["selectable"].table
        # SQLAlchemy 2.1 has a mapping here, earlier ones a list of pairs.
        given = dict(clause.update_values_to_set)
        assignments = []
        for column in table.c:
            key = next((key for key in (column.key, column) if key in given), None)
            if key is not None:
                assignments.append(self._conflict_assignment(column, given.pop(key), **kw))
        if given:
            unknown = ", ".join(repr(str(getattr(key, "key", key))) for key in given)
            raise exc.CompileError(
                f"ON CONFLICT DO UPDATE sets what table {table.name!r} has no columns for: {unknown}"
            )
        text = f"ON CONFLICT{self._conflict_target(clause, **kw)} DO UPDATE SET {', '.join(assignments)}"
        if clause.update_whereclause is not None:
            condition = self.process(clause.update_whereclause, **{**kw, "include_table": True, "use_schema": False})
            text += f" WHERE {condition}"
        return text

    def _conflict_assignment(self, column: Any, value: Any, **kw: Any) -> str:
        if coercions._is_literal(value):
            value = elements.BindParameter(None, value, type_=column.type)
        elif isinstance(value, elements.BindParameter) and value.type._isnull:
            value = value._with_binary_element_type(column.type)
        text = self.process(value.self_group(), **{**kw, "use_schema": False})
        return f"{self.preparer.quote(column.name)} = {text}"

    def _conflict_target(self, clause: Any, **kw: Any) -> str:
        elements_ = clause.inferred_target_elements
        if elements_ is None:
            return ""
        if clause.inferred_target_whereclause is not None:
            raise exc.CompileError("ON CONFLICT has no index_where: a lake has no partial indexes")
        names = (
            self.preparer.quote(column)
            if isinstance(column, str)
            else self.process(column, include_table=False, use_schema=False)
            for column in elements_
        )
        return f" ({', '.join(names)})"

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} IS DISTINCT FROM {self.process(binary.right, **kw)}"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} IS NOT DISTINCT FROM {self.process(binary.right, **kw)}"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_now_func(self, function: Any, **kw: Any) -> str:
        return "CURRENT_TIMESTAMP"

    def visit_char_length_func(self, function: Any, **kw: Any) -> str:
        return f"length{self.function_argspec(function, **kw)}"

    def visit_aggregate_strings_func(self, function: Any, **kw: Any) -> str:
        return f"string_agg{self.function_argspec(function, **kw)}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self._regexp('regexp_matches', binary, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_replace", binary, **kw)

    def _regexp(self, name: str, binary: Any, **kw: Any) -> str:
        flags = binary.modifiers.get("flags")
        arguments = [self.process(binary.left, **kw)]
        if "replacement" in binary.modifiers:  # SQLAlchemy 1.4
            arguments.append(self.process(binary.right, **kw))
            arguments.append(self.process(binary.modifiers["replacement"], **kw))
        elif isinstance(binary.right, elements.ClauseList):
            arguments.extend(self.process(clause, **kw) for clause in binary.right.clauses)
        else:
            arguments.append(self.process(binary.right, **kw))
        if flags is not None:
            arguments.append(self.render_literal_value(flags, sqltypes.STRINGTYPE))
        return f"{name}({', '.join(arguments)})"

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        if select._distinct_on:
            columns = (self.process(column, **kw) for column in select._distinct_on)
            return f"DISTINCT ON ({', '.join(columns)}) "
        return "DISTINCT " if select._distinct else ""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return text

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Snapshot isolation has no row locks: conflicts show at commit."""
        return ""

    if sqlalchemy.__version__.startswith("1.4"):

        def returning_clause(self, stmt: Any, returning_cols: Any) -> str:
            columns = expression._select_iterables(returning_cols)
            return f"RETURNING {', '.join(self._label_select_column(None, c, True, False, {}) for c in columns)}"

    def update_from_clause(
        self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return f"FROM {self._other_tables(extra_froms, from_hints, **kw)}"

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return f"USING {self._other_tables(extra_froms, from_hints, **kw)}"

    def _other_tables(self, extra_froms: Any, from_hints: Any, **kw: Any) -> str:
        kw["asfrom"] = True
        return ", ".join(table._compiler_dispatch(self, fromhints=from_hints, **kw) for table in extra_froms)

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        return f"SELECT {', '.join('NULL' for _ in element_types or [None])} WHERE false"

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)}[{self.process(binary.right, **kw)}]"

    def visit_slice(self, element: Any, **kw: Any) -> str:
        return f"{self.process(element.start, **kw)}:{self.process(element.stop, **kw)}"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._json(binary, **kw)

    def visit_json_path_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._json(binary, **kw)

    def _json(self, binary: Any, **kw: Any) -> str:
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        if binary.type._type_affinity is sqltypes.JSON:
            return f"json_extract({left}, {right})"
        text = f"json_extract_string({left}, {right})"
        if isinstance(binary.type, (sqltypes.Integer, sqltypes.Numeric, sqltypes.Boolean)):
            return f"CAST({text} AS {self.dialect.type_compiler.process(binary.type)})"
        return text


def _temporal_literal(value: date | time, type_: Any) -> str:
    """`DATE '2026-03-01'`; a datetime for a DATE column is cut to its date."""
    if isinstance(value, time):
        return f"{'TIMETZ' if value.tzinfo else 'TIME'} '{value.isoformat()}'"
    if not isinstance(value, datetime):
        return f"DATE '{value.isoformat()}'"
    if type_._type_affinity is sqltypes.Date:
        return f"DATE '{value.date().isoformat()}'"
    return f"{'TIMESTAMPTZ' if value.tzinfo else 'TIMESTAMP'} '{value.isoformat(' ')}'"
