"""SQL text of DDL."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any

from sqlalchemy import exc, schema
from sqlalchemy import types as sqltypes
from sqlalchemy.sql import compiler

from sqlalchemy_lake.maintenance import Checkpoint, Optimize, Restore, Vacuum


class IndexIgnoredWarning(UserWarning):
    """CREATE INDEX does nothing on a lake."""


_UNSET = {"minvalue": (None, 1)}
"""What an option of `Identity` may be besides None and False: such as it is anyway."""


class LakeDDLCompiler(compiler.DDLCompiler):
    def get_column_specification(self, column: schema.Column[Any], **kw: Any) -> str:
        words = [
            self.preparer.format_column(column),
            self.dialect.type_compiler.process(column.type, type_expression=column),
        ]
        default = self.get_column_default_string(column)
        if column.computed is not None:
            words.append(self.process(column.computed))
        elif column.identity is not None:
            words.append(self.process(column.identity))
        elif default is not None:
            words.append(f"DEFAULT {default}")
        elif column is column.table._autoincrement_column:
            words.append("AUTOINCREMENT")
        if not column.nullable:
            words.append("NOT NULL")
        return " ".join(words)

    def visit_identity_column(self, identity: schema.Identity, **kw: Any) -> str:
        """Formats that cannot count so say it themselves."""
        for name in ("minvalue", "maxvalue", "nominvalue", "nomaxvalue", "cycle", "cache", "order", "on_null"):
            if getattr(identity, name, None) not in _UNSET.get(name, (None, False)):
                raise exc.CompileError(f"Identity({name}=…): identity columns of a lake have only start and increment")
        text = f"GENERATED {'ALWAYS' if identity.always else 'BY DEFAULT'} AS IDENTITY"
        start, step = (1 if number is None else number for number in (identity.start, identity.increment))
        return text if start == step == 1 else f"{text} (START WITH {start} INCREMENT BY {step})"

    def visit_computed_column(self, generated: schema.Computed, **kw: Any) -> str:
        if generated.persisted is False:
            raise exc.CompileError("Computed(persisted=False): a lake keeps computed values in its files")
        expression = self.sql_compiler.process(generated.sqltext, include_table=False, literal_binds=True)
        return f"GENERATED ALWAYS AS ({expression})"

    def post_create_table(self, table: schema.Table) -> str:
        options = table.dialect_options["lake"]
        text = ""
        if options["partitioned_by"]:
            text += f"\nPARTITIONED BY ({', '.join(map(str, options['partitioned_by']))})"
        if options["sorted_by"]:
            text += f"\nSORTED BY ({', '.join(map(str, options['sorted_by']))})"
        if options["properties"]:
            pairs = (f"{self._literal(key)} = {self._literal(value)}" for key, value in options["properties"].items())
            text += f"\nWITH ({', '.join(pairs)})"
        return text

    def _literal(self, value: object) -> str:
        return str(self.sql_compiler.render_literal_value(str(value), sqltypes.STRINGTYPE))

    def visit_lake_optimize(self, optimize: Optimize, **kw: Any) -> str:
        text = f"OPTIMIZE TABLE {self.preparer.format_table(optimize.element)}"
        if optimize.where is None:
            return text
        where = self.sql_compiler.process(optimize.where, literal_binds=True, include_table=False)
        return f"{text} WHERE {where}"

    def visit_lake_vacuum(self, vacuum: Vacuum, **kw: Any) -> str:
        text = "VACUUM"
        if vacuum.element is not None:
            text += f" TABLE {self.preparer.format_table(vacuum.element)}"
        if vacuum.retain_hours is not None:
            text += f" RETAIN ({self._number(vacuum.retain_hours)}) HOURS"
        return text + " DRY RUN" * vacuum.dry_run

    def visit_lake_restore(self, restore: Restore, **kw: Any) -> str:
        if restore.timestamp is None:
            point = f"VERSION AS OF {self._number(restore.version)}"
        else:
            shown = restore.timestamp
            point = f"TIMESTAMP AS OF {self._literal(shown.isoformat(' ') if isinstance(shown, datetime) else shown)}"
        return f"RESTORE TABLE {self.preparer.format_table(restore.element)} TO {point}"

    def visit_lake_checkpoint(self, checkpoint: Checkpoint, **kw: Any) -> str:
        return "CHECKPOINT" if checkpoint.catalog is None else f"CHECKPOINT {self.preparer.quote(checkpoint.catalog)}"

    def _number(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise exc.CompileError(f"{value!r} is no number")
        return str(value)

    def visit_create_index(self, create: Any, **kw: Any) -> str:
        """Nothing: what an index promises about speed, partitioning and sorting give."""
        kind = "unique index" if create.element.unique else "index"
        warnings.warn(
            f"a lake has no indexes: {kind} {create.element.name!r} is left out; see lake_partitioned_by and "
            "lake_sorted_by",
            IndexIgnoredWarning,
            stacklevel=2,
        )
        return ""

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        return ""
