"""EXPLAIN: which files a query reads, which deletes apply, and the engine's own plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakedbapi.context import Context
from lakedbapi.engine.base import RelationName, Result, ScanRelation, TableResult
from lakedbapi.model.scan import FileGroup, Scan
from lakedbapi.query.filters import table_name
from lakedbapi.query.plan import plan
from lakedbapi.query.relations import relations
from lakedbapi.sql.statements import Named, Select, Travel

_SHOWN_FILES = 10


def explain(context: Context, select: Select, *, analyze: bool = False) -> Result:
    """Lines of text in one column `explain`. `analyze` runs the query and shows what the engine measured."""
    planned = plan(context, select)
    everything = relations(context, select.identifiers, select.specials)
    lines: list[str] = []
    for name, relation in planned.relations.items():
        if isinstance(relation, ScanRelation) and _is_used(select, name):
            whole = everything.get(name)
            total = whole.scan.file_count if isinstance(whole, ScanRelation) else relation.scan.file_count
            lines += scan_lines(_called(select, name), relation.scan, total)
    verb = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
    text = context.engine.fetch(replace(planned, sql=f"{verb} {planned.sql}", explained=True))
    lines += (line for value in text.column(text.num_columns - 1).to_pylist() for line in value.splitlines())
    return TableResult(pa.table({"explain": pa.array(lines, pa.string())}), ["VARCHAR"])


def scan_lines(name: str, scan: Scan, total: int) -> list[str]:
    """What a scan of the table `name`, which has `total` data files, reads."""
    read = scan.file_count
    facts = [f"{read} of {total} data files read"]
    if read < total:
        facts[0] += f", {total - read} pruned by statistics and partition values"
    files = [(group, number) for group in scan.files for number in sorted(group.deletes)]
    if files:
        deleted = sum(len(group.deletes[number]) for group, number in files)
        facts.append(f"{deleted} deleted rows in {len(files)} of them are left out")
    by_value = [deletes for group in scan.files for deletes in group.equality_deletes]
    if by_value:
        facts.append(f"equality deletes are looked up for {_reached(scan)} of them")
    if scan.merged:
        facts.append(f"{len(scan.merged)} of them merged with their log files")
    rows = sum(group.rows.num_rows - len(group.deletes or ()) for group in scan.rows if group.path is None)
    if rows:
        facts.append(f"{rows} rows that are in no file")
    lines = [f"{name}: {'; '.join(facts)}"]
    for deletes in by_value:
        keys = ", ".join(key.name for key in deletes.keys)
        lines.append(f"  {deletes.files.num_rows} equality delete files by {keys}")
    for group, number in files[:_SHOWN_FILES]:
        lines.append(f"  {_path(group, number)}: {len(group.deletes[number])} of {_count(group, number)} rows deleted")
    if len(files) > _SHOWN_FILES:
        lines.append(f"  … and {len(files) - _SHOWN_FILES} more files with deleted rows")
    return lines


def _reached(scan: Scan) -> int:
    """The data files that some equality delete reaches."""
    groups = [group.equality_deletes for group in scan.files if group.equality_deletes]
    return sum(int(np.logical_or.reduce([deletes.reached() for deletes in group]).sum()) for group in groups)


def _is_used(select: Select, name: RelationName) -> bool:
    """Whether the query names the table, as far as can be told."""
    if select.tree is None:
        return True
    return any(table_name(table) == name.name.casefold() for table in select.tree.find_all(exp.Table))


def _called(select: Select, name: RelationName) -> str:
    """The table as the query calls it."""
    for special in select.specials:
        if special.name == name.name and isinstance(special.relation, Travel):
            return f"{special.relation.of} at {special.relation.kind} {special.relation.value.sql(dialect='duckdb')}"
        if special.name == name.name and isinstance(special.relation, Named):
            return str(special.relation.of)
    return ".".join(name)


def _path(group: FileGroup, number: int) -> str:
    return str(group.files.column("path")[number])


def _count(group: FileGroup, number: int) -> int:
    return int(group.files.column("record_count")[number].as_py())
