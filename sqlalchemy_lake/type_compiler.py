"""SQL names of types."""

from __future__ import annotations

from typing import Any

from sqlalchemy.sql import compiler


class LakeTypeCompiler(compiler.GenericTypeCompiler):
    """Lengths of text and binary types are not kept by any lake format, so they are not written either."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_REAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "FLOAT"

    def visit_DOUBLE(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "DOUBLE"

    visit_double = visit_DOUBLE_PRECISION = visit_DOUBLE  # noqa: N815

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        if type_.precision is None:
            return "DECIMAL(38, 10)"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC  # noqa: N815

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "VARCHAR"

    visit_CHAR = visit_NVARCHAR = visit_NCHAR = visit_TEXT = visit_CLOB = visit_enum = visit_VARCHAR  # noqa: N815

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "BLOB"

    visit_BINARY = visit_VARBINARY = visit_large_binary = visit_BLOB  # noqa: N815

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "TIMESTAMPTZ" if type_.timezone else "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME  # noqa: N815

    def visit_TIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "TIMETZ" if type_.timezone else "TIME"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID" if getattr(type_, "native_uuid", True) else "VARCHAR"

    def visit_UUID(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "UUID"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "JSON"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return self.process(type_.item_type, **kw) + "[]" * (type_.dimensions or 1)

    visit_LIST = visit_ARRAY  # noqa: N815

    def visit_MAP(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return f"MAP({self.process(type_.key_type, **kw)}, {self.process(type_.value_type, **kw)})"

    def visit_STRUCT(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        quote = self.dialect.identifier_preparer.quote
        return "STRUCT(" + ", ".join(f"{quote(name)} {self.process(t, **kw)}" for name, t in type_.fields.items()) + ")"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "INTERVAL"

    visit_interval = visit_INTERVAL

    def visit_lake_plain(self, type_: Any, **kw: Any) -> str:
        """A type without parameters is called as its class."""
        return type(type_).__name__
