"""Procedures of CALL that change something: options and commit messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lakedbapi import query
from lakedbapi.context import Context
from lakedbapi.errors import ProgrammingError
from lakedbapi.sql.statements import Call, Name
from lakedbapi.transaction import CatalogView


class _Arguments:
    """The arguments of a CALL by name, after the catalog, which is the name's qualifier or the first argument."""

    def __init__(self, context: Context, call: Call, names: tuple[str, ...]) -> None:
        positional = [query.constant(context, argument) for argument in call.arguments]
        catalog = call.name.parts[0] if len(call.name.parts) > 1 else positional.pop(0) if positional else None
        if not isinstance(catalog, str):
            raise ProgrammingError(f"{call.name} needs the catalog's name as its first argument")
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


def _set_option(context: Context, call: Call) -> None:
    arguments = _Arguments(context, call, ("option", "value", "schema", "table_name"))
    option, value = arguments.text("option"), arguments.text("value")
    if option is None:
        raise ProgrammingError(f"{call.name} needs the option's name")
    schema, table = arguments.text("schema"), arguments.text("table_name")
    view = arguments.view
    context.transaction.check_writable(view.alias)
    if table is not None:
        _, _, _, found = query.resolve_table(context, Name((view.alias, schema or "main", table)))
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


PROCEDURES: Mapping[str, Callable[[Context, Call], None]] = {
    "set_option": _set_option,
    "ducklake_set_option": _set_option,
    "set_commit_message": _set_commit_message,
    "ducklake_set_commit_message": _set_commit_message,
}
