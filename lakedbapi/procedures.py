"""Procedures of CALL that change something: options and commit messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lakedbapi import query
from lakedbapi.context import Context
from lakedbapi.ddl.external import add_files
from lakedbapi.errors import ProgrammingError
from lakedbapi.model.table_options import check_option
from lakedbapi.sql.statements import Call, Name
from lakedbapi.transaction import CatalogView


class _Arguments:
    """The arguments of a CALL by name, after the catalog, which is the name's qualifier or the first argument."""

    def __init__(self, context: Context, call: Call, names: tuple[str, ...]) -> None:
        positional = [query.constant(context, argument) for argument in call.arguments]
        catalog = call.name.parts[0] if len(call.name.parts) > 1 else query.called_catalog(context, call, positional)
        if len(positional) > len(names):
            raise ProgrammingError(f"{call.name} takes at most {len(names) + 1} arguments: catalog, {', '.join(names)}")
        self.view: CatalogView = context.transaction.view(query.resolve_catalog(context, catalog))
        self.values: dict[str, object] = dict(zip(names, positional, strict=False))
        for name, argument in call.named:
            if name.casefold() not in names:
                raise ProgrammingError(f"{call.name} has no argument {name!r}; it has: {', '.join(names)}")
            self.values[name.casefold()] = query.constant(context, argument)

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else str(value)

    def table(self, context: Context) -> query.ResolvedTable:
        """The table that `table_name` and `schema` name."""
        alias = self.view.alias
        current = context.search_path[1] if context.search_path[0] == alias else "main"
        name = Name((alias, self.text("schema") or current, self.text("table_name") or ""))
        return query.resolve_table(context, name)


def _set_option(context: Context, call: Call) -> None:
    arguments = _Arguments(context, call, ("option", "value", "schema", "table_name"))
    option, value = arguments.text("option"), arguments.text("value")
    if option is None:
        raise ProgrammingError(f"{call.name} needs the option's name")
    check_option(option, value)
    schema, table = arguments.text("schema"), arguments.text("table_name")
    view = arguments.view
    context.transaction.check_writable(view.alias)
    if table is not None:
        current = context.search_path[1] if context.search_path[0] == view.alias else "main"
        _, _, _, found = query.resolve_table(context, Name((view.alias, schema or current, table)))
        view.catalog.set_option(option, value, table=found)
    elif schema is not None:
        info = view.schema(schema)
        if info is None:
            raise ProgrammingError(f"schema {schema!r} does not exist in catalog {view.alias!r}")
        view.catalog.set_option(option, value, schema=info)
    else:
        view.catalog.set_option(option, value)


def _set_commit_message(context: Context, call: Call) -> None:
    arguments = _Arguments(context, call, ("author", "commit_message", "extra_info"))
    view = arguments.view
    context.transaction.stage(
        view.alias,
        replace(
            view.changes,
            author=arguments.text("author"),
            message=arguments.text("commit_message"),
            extra_info=arguments.text("extra_info"),
        ),
    )


def add_data_files(context: Context, call: Call) -> None:
    """`path` is a path, glob or list of them. The lake owns the files then: it may remove them after a rewrite."""
    names = ("table_name", "path", "allow_missing", "ignore_extra_columns", "hive_partitioning", "schema")
    arguments = _Arguments(context, call, names)
    table, paths = arguments.text("table_name"), arguments.values.get("path")
    if table is None or not paths:
        raise ProgrammingError(f"{call.name} needs the names of the table and of the files")
    hive = arguments.values.get("hive_partitioning")
    add_files(
        context,
        arguments.table(context),
        [str(path) for path in (paths if isinstance(paths, list) else [paths])],
        allow_missing=bool(arguments.values.get("allow_missing")),
        ignore_extra_columns=bool(arguments.values.get("ignore_extra_columns")),
        hive_partitioning=None if hive is None else bool(hive),
    )


def _migrate(context: Context, call: Call) -> None:
    arguments = _Arguments(context, call, ("version",))
    context.transaction.check_writing(arguments.view.alias)
    if context.transaction.staged is not None:
        raise ProgrammingError(
            f"{call.name} commits by itself, so it cannot run inside a transaction with changes: commit or roll back "
            "first"
        )
    arguments.view.catalog.migrate(arguments.text("version"))


PROCEDURES: Mapping[str, Callable[[Context, Call], None]] = {
    "add_data_files": add_data_files,
    "ducklake_add_data_files": add_data_files,
    "set_option": _set_option,
    "ducklake_set_option": _set_option,
    "migrate": _migrate,
    "ducklake_migrate": _migrate,
    "set_commit_message": _set_commit_message,
    "ducklake_set_commit_message": _set_commit_message,
}
