"""What other systems' SQL has and this one lacks: the words that say what to do instead.

It is asked only about statements that have failed, so nothing here can refuse what works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakedbapi.errors import Error
from lakedbapi.sql.tokens import QUOTED, STRING, scan

_NOT_KNOWN = re.compile(
    r"syntax error|Parser Error|Unimplemented explain|table (?:or view )?\S+ does not exist|Scalar Function with name"
    r"|'<=>\(|there is no (procedure|type|schema or catalog)|because schema \S+ does not exist"
    r"|catalog \S+ is not attached"
)

_STATEMENTS = (
    (r"show partitions\b", "SHOW PARTITIONS", "files('t') lists a table's files with their partition values"),
    (r"show functions\b", "SHOW FUNCTIONS", "SELECT … FROM duckdb_functions() lists them"),
    (r"show (index|indexes|keys)\b", "SHOW INDEX", "lake tables have no indexes; information_schema lists keys"),
    (r"show (full|extended) ", "SHOW FULL", "SHOW ALL TABLES tells the columns, information_schema.tables more"),
    (r"show table extended\b", "SHOW TABLE EXTENDED", "SHOW ALL TABLES tells the columns of all tables"),
    (r"show create (?!table|view)", "SHOW CREATE of this", "only tables and views have a definition"),
    (
        r"show (tables|views|schemas) (in|from) (account|catalog|database)\b",
        "SHOW with the kind of a place that is no schema",
        "SHOW TABLES IN schema or catalog.schema, SHOW SCHEMAS IN catalog, SHOW ALL TABLES",
    ),
    (
        r"show current\b",
        "SHOW CURRENT …",
        "SELECT current_catalog(), current_schema() tells where names are looked up",
    ),
    (
        r"show \w+( isolation level)?$",
        "SHOW of what is no table or view",
        (
            "SHOW has TABLES, ALL TABLES, VIEWS, SCHEMAS, DATABASES, COLUMNS FROM t, CREATE TABLE t and TBLPROPERTIES "
            "t; lake.settings() lists the settings of a lake"
        ),
    ),
    (
        r"(describe|desc) (table )?(extended|formatted|detail)\b",
        "DESCRIBE EXTENDED or DETAIL",
        (
            "DESCRIBE t has the columns, SHOW TBLPROPERTIES t the properties, SHOW CREATE TABLE t all of its "
            "definition, files('t') its files and DESCRIBE HISTORY t its versions"
        ),
    ),
    (
        r"(describe|desc) (schema|database|namespace|function|catalog)\b",
        "DESCRIBE of this",
        "information_schema.schemata lists schemas, duckdb_functions() functions",
    ),
    (
        (
            r"create (or replace )?table (if not exists )?\S+ "
            r"(?!.*\bas (select|with|from)\b).*\b(location|stored|tablespace|engine)\b"
        ),
        "a place or storage engine of a table's own",
        "tables lie where their catalog puts them (data_path, warehouse or the directory in connect()); leave it out",
    ),
    (
        (
            r"create (or replace )?table (if not exists )?\S+ (?!.*\bas (select|with|from)\b)"
            r".*\) .*\b(charset|character set|collate|auto_increment|row_format|options|inherits|without|on commit|"
            r"row format|organization|data_retention\w*)\b"
        ),
        "this option of a table",
        "leave it out; WITH (name = 'value') sets properties of the table's format, COMMENT '…' describes it",
    ),
    (
        r"create (or replace )?table .*\bpartition(ed)? (by (range|list|hash)|of)\b",
        "partitions by ranges, lists or hashes",
        "PARTITIONED BY (month(ts)), (bucket(16, id)) or (region): a new value makes its partition",
    ),
    (
        r"create (or replace )?table .*\bclustered by\b",
        "CLUSTERED BY … INTO n BUCKETS",
        "PARTITIONED BY (bucket(n, c)), where the format has it",
    ),
    (r"create table (if not exists )?\S+ select\b", "CREATE TABLE without AS", "CREATE TABLE new AS SELECT …"),
    (r"create (external|foreign)\b", "CREATE EXTERNAL TABLE", "CREATE TABLE, and INSERT or add the files to it"),
    (r"create snapshot\b", "CREATE SNAPSHOT", "a lake keeps its versions: SELECT * FROM t FOR VERSION AS OF n"),
    (r"create (or replace )?function .*\breturns\b", "CREATE FUNCTION", "CREATE MACRO name(x) AS …"),
    (r"create (schema|namespace) .*\bcomment\b", "COMMENT in CREATE SCHEMA", "COMMENT ON SCHEMA s IS '…'"),
    (r"create (schema|namespace) .*\blocation\b", "a place of a schema's own", "leave it out"),
    (
        r"create (or replace )?table (if not exists )?\S+ (shallow |deep )?clone\b",
        "CLONE",
        "CREATE TABLE new AS SELECT * FROM t, with AT (VERSION => …) for an older state",
    ),
    (r"create (extension|procedure)\b", "CREATE of this", "CREATE MACRO name(x) AS … keeps an expression or a query"),
    (r"create schema .*\bauthorization\b", "AUTHORIZATION", "access is the storage's and the catalog's business"),
    (
        r"create or replace schema\b",
        "CREATE OR REPLACE SCHEMA",
        "DROP SCHEMA IF EXISTS s CASCADE, then CREATE SCHEMA s",
    ),
    (r"replace table\b", "REPLACE TABLE", "CREATE OR REPLACE TABLE t"),
    (
        r"alter table .*\b(modify|change)\b",
        "MODIFY or CHANGE of a column",
        "ALTER TABLE t ALTER COLUMN c TYPE …, ALTER TABLE t RENAME COLUMN c TO d",
    ),
    (r"alter table .*\balter .*\bcomment\b", "COMMENT in ALTER TABLE", "COMMENT ON COLUMN t.c IS '…'"),
    (r"alter table \S+ (set )?comment\b", "COMMENT in ALTER TABLE", "COMMENT ON TABLE t IS '…'"),
    (
        r"alter table \S+ alter (column )?\S+ (?!set\b|drop\b|type\b|first\b|after\b)",
        "a type behind the name in ALTER COLUMN",
        "ALTER TABLE t ALTER COLUMN c TYPE …",
    ),
    (
        r"alter table \S+ (engine|convert|enable|disable|validate|nocheck|swap|recover|set options|replace columns)\b",
        "this change of a table",
        "ALTER TABLE has ADD, DROP, RENAME, ALTER COLUMN, SET (name = 'value'), SET PARTITIONED BY and SET SORTED BY",
    ),
    (r"alter (index|sequence|type|domain)\b", "ALTER of this", "lakes have schemas, tables, views and macros"),
    (r"alter view \S+ as\b", "ALTER VIEW … AS", "CREATE OR REPLACE VIEW v AS SELECT …"),
    (r"alter table only\b", "ONLY", "no table inherits from another: leave it out"),
    (r"(exec )?(rename table|sp_rename)\b", "RENAME TABLE", "ALTER TABLE t RENAME TO u"),
    (
        r"alter table .*\b(add|drop|replace) partition field\b",
        "a change of one partition field",
        "ALTER TABLE t SET PARTITIONED BY (…) names all that new files have, RESET PARTITIONED BY none",
    ),
    (
        r"alter table .*\bwrite (ordered|locally|distributed|unordered)\b",
        "WRITE ORDERED BY",
        "ALTER TABLE t SET SORTED BY (…), or RESET SORTED BY",
    ),
    (
        r"alter table .*\b(add|drop) partition\b",
        "partitions that are added or dropped",
        "INSERT makes them, DELETE FROM t WHERE … drops their files",
    ),
    (
        r"alter table .*\bset (location|schema)\b",
        "moving a table",
        "CREATE TABLE new AS SELECT * FROM t, then DROP TABLE t",
    ),
    (r"alter table .*\b(owner to|(add|drop) (index|key))\b", "this", "lake tables have neither owners nor indexes"),
    (
        r"alter (schema|database|namespace)\b",
        "ALTER of a schema or database",
        "make another, and CREATE TABLE … AS there",
    ),
    (
        r"(delete|update) .*\b(limit|order by)\b",
        "LIMIT or ORDER BY in DELETE and UPDATE",
        "choose the rows by key: WHERE id IN (SELECT id FROM t ORDER BY … LIMIT …)",
    ),
    (
        r"delete from \S+ ?,",
        "DELETE from several tables",
        "a DELETE FROM t USING u WHERE … for each, in one transaction",
    ),
    (r".* where current of\b", "WHERE CURRENT OF", "choose the rows by key: WHERE id = …"),
    (
        r"(insert|update|delete|merge) .*\boutput (inserted|deleted|\$action)\b",
        "OUTPUT",
        "RETURNING at the end of the statement gives the rows",
    ),
    (
        r"update (\w+) set .*\b(?:from|join|,) \S+ (?:as )?\1\b",
        "an alias that only FROM explains",
        "UPDATE t AS a SET … FROM s WHERE a.id = s.id: the target stands before SET, the others in FROM",
    ),
    (
        r"delete from (\w+) using (?:.*(?:,|join) )?(?:\S+ \. )*\S+ (?:as )?\1\b",
        "an alias that only USING explains",
        "DELETE FROM t AS a USING s WHERE a.id = s.id",
    ),
    (
        r"(update (ignore|low_priority)|insert (low_priority|delayed))\b",
        "this option of INSERT or UPDATE",
        "leave it out",
    ),
    (r"update top\b", "UPDATE TOP", "choose the rows by key: WHERE id IN (SELECT id FROM t ORDER BY … LIMIT …)"),
    (r"merge .*\bupdate set .* where\b", "WHERE in a clause of MERGE", "WHEN MATCHED AND condition THEN …"),
    (r"merge with schema evolution\b", "SCHEMA EVOLUTION", "ALTER TABLE t ADD COLUMN … first"),
    (r"merge .*\binsert row\b", "INSERT ROW", "INSERT *"),
    (r"delete (?!from\b)", "DELETE without FROM", "DELETE FROM t WHERE …, or DELETE FROM t USING u WHERE … to join"),
    (r"update \S+( \S+)? ?(,|(inner |left |)join\b)", "a join before SET", "UPDATE t SET … FROM u WHERE t.id = u.id"),
    (r"(update|delete from) only\b", "ONLY", "no table inherits from another: leave it out"),
    (
        r"drop \w+ (if exists )?[^,]+,",
        "dropping several at once",
        "write a DROP for each, which executescript runs together",
    ),
    (
        r"drop table .* purge$",
        "DROP TABLE … PURGE",
        "DROP TABLE t, and VACUUM or the lake's retention removes its files",
    ),
    (r"drop table .*\bcascade constraints$", "CASCADE CONSTRAINTS", "DROP TABLE t"),
    (r"truncate .*\bpartition\b", "TRUNCATE of a partition", "DELETE FROM t WHERE … drops its files"),
    (r"truncate (table )?if exists\b", "TRUNCATE IF EXISTS", "TRUNCATE TABLE t"),
    (r"truncate .*,", "TRUNCATE of several tables", "write a TRUNCATE for each; a transaction makes them one change"),
    (
        r"truncate .*\b(cascade|restrict|identity)\b",
        "an option of TRUNCATE",
        "TRUNCATE TABLE t empties just this table",
    ),
    (r"insert overwrite\b", "INSERT OVERWRITE", "BEGIN, DELETE FROM or TRUNCATE, INSERT INTO, COMMIT"),
    (r"insert into \S+ replace where\b", "REPLACE WHERE", "BEGIN, DELETE FROM t WHERE …, INSERT INTO t …, COMMIT"),
    (r"insert .*\bvalue\b", "VALUE", "INSERT INTO t (a, b) VALUES (1, 2)"),
    (r"insert all\b", "INSERT ALL", "an INSERT for each, in one transaction"),
    (r"insert ignore\b", "INSERT IGNORE", "INSERT OR IGNORE INTO t …, or ON CONFLICT DO NOTHING"),
    (r"insert .*\bon duplicate key\b", "ON DUPLICATE KEY", "ON CONFLICT (key) DO UPDATE SET a = excluded.a, or MERGE"),
    (r"insert into \S+ set\b", "INSERT … SET", "INSERT INTO t (a, b) VALUES (1, 2)"),
    (r"insert (into )?\S+ partition\b", "INSERT … PARTITION", "give the partition's columns like all others"),
    (r"insert .*\boverriding\b", "OVERRIDING", "a column GENERATED BY DEFAULT takes the values that are given"),
    (r"insert (?!into|or|overwrite|ignore)", "INSERT without INTO", "INSERT INTO t …"),
    (r"select .*\binto \S+ from\b", "SELECT … INTO", "CREATE TABLE new AS SELECT …"),
    (
        r"explain (\( \)|(extended|verbose|formatted|codegen|cost)\b)",
        "EXPLAIN with options",
        "EXPLAIN …, or EXPLAIN ANALYZE SELECT …",
    ),
    (
        r"(commit|rollback|end) .*(chain|prepared|tran)\b",
        "this end of a transaction",
        "COMMIT or ROLLBACK, then BEGIN anew",
    ),
    (
        r"use (schema|database|catalog|warehouse|role)\b",
        "USE with the kind of the name",
        "USE schema, USE catalog or USE catalog.schema",
    ),
    (
        r"(declare|fetch|move|close)\b",
        "a cursor in SQL",
        "cursors of the driver read results as they come: fetchmany()",
    ),
    (r"(listen|notify|unlisten)\b", "LISTEN or NOTIFY", "table_changes('t', from, to) tells what happened to a table"),
    (
        r"(do|exec|go|if|print|while)\b",
        "a block of statements",
        "executescript runs several, with ; between them",
    ),
    (
        r"vacuum (full|analyze|verbose)\b",
        "VACUUM with options",
        "VACUUM t removes old files, OPTIMIZE t merges small ones",
    ),
    (
        r"(reindex|cluster)\b",
        "this",
        "OPTIMIZE t merges small files, and sorts them by ZORDER BY (…) or the table's order",
    ),
    (r"optimize .* final$", "OPTIMIZE … FINAL", "OPTIMIZE t"),
    (
        r"(undrop|flashback)\b",
        "UNDROP",
        "a DuckLake shows a dropped table in its older versions: CREATE TABLE t AS SELECT * FROM t FOR VERSION AS OF n",
    ),
    (
        r"call .*\b(rollback_to_snapshot|rollback_to_timestamp|set_current_snapshot)\b",
        "this procedure",
        "RESTORE TABLE t TO VERSION AS OF n, or TO TIMESTAMP AS OF '…'",
    ),
    (
        r"call .*\b(cherrypick_snapshot|publish_changes)\b",
        "this procedure",
        "write to a branch, t.branch_b, and CALL fast_forward('t', 'main', 'b')",
    ),
    (r"convert to\b", "CONVERT", "CREATE TABLE new AS SELECT …, or let the lake add the files where it can"),
    (r"unlock\b", "UNLOCK", "each transaction reads one snapshot, and conflicts are found when it commits"),
    (r"uncache\b", "UNCACHE", "each transaction reads the newest snapshot"),
    (r"bulk insert\b", "BULK INSERT", "INSERT … SELECT, executemany or adbc_ingest"),
    (
        r"(add jar|assert|check table|discard|flush|fsck|generate|handler|help|kill|list|repair|security)\b",
        "this",
        "docs/sql.md lists the statements",
    ),
)
"""What a failed statement begins with, what that is called, and what to write instead."""

_QUERIES = (
    (r"(.* )?limit (\d+|[$?]\S*|: \w+) ?,", "LIMIT offset, count", "LIMIT count OFFSET offset"),
    (r"(.* )?select (distinct )?top [\d(?$:]", "SELECT TOP", "SELECT … LIMIT n"),
    (r"select .*\bwith \( \)", "a hint of a table", "leave it out"),
    (r".* (rlike|regexp) ", "RLIKE or REGEXP", "regexp_matches(text, 'pattern') or text ~ 'pattern' for all of it"),
    (r".* lateral view\b", "LATERAL VIEW", "SELECT …, unnest(list) FROM t, or FROM t, unnest(t.list) AS u(x)"),
    (r".* minus( all)? ?(select|\()", "MINUS", "EXCEPT"),
    (r".* <= >", "<=>", "IS NOT DISTINCT FROM"),
    (r".* (cross|outer) apply\b", "APPLY", "CROSS JOIN LATERAL (…), or LEFT JOIN LATERAL (…) ON true"),
    (
        r".*\binterval ([$?]\S*|: \w+) (year|quarter|month|week|day|hour|minute|second)s?\b",
        "INTERVAL with a bare parameter",
        "INTERVAL (?) DAY, or a timedelta as the parameter",
    ),
    (
        r".*\b(date|time|timestamp|timestamptz) ([$?]\S*|: \w+)",
        "a type before a parameter",
        "CAST(? AS DATE), or a date as the parameter",
    ),
    (r".* connect by\b", "CONNECT BY", "WITH RECURSIVE name AS (…)"),
    (
        r"(.* )?@ @",
        "a variable of the server",
        "version() tells that of the engine, lake.settings() the settings of a lake",
    ),
    (r".*\bsafe_cast\b", "SAFE_CAST", "TRY_CAST(x AS type)"),
    (r".*\bfrom dual\b", "DUAL", "leave out FROM: SELECT 1"),
    (
        r"(?:.* )?(?:from|join|into|update) (?:delta|iceberg|hudi|parquet|csv|json) \. \"\"",
        "a table named by its path",
        "connect('delta:///path'), or ATTACH 'delta:/path' AS name with allow_attach=True, for each format",
    ),
    (
        (
            r"(?:.* )?(?:from|join) (?:\S+ \. )*\S+ \. "
            r"(?:history|snapshots|refs|files|delete_files|manifests|partitions)\b"
        ),
        "a table behind another one's name",
        "history('t'), refs('t'), files('t'), delete_files('t'), manifests('t') and partitions('t') describe it",
    ),
    (r".* (table|into|from|update|join) (\S+ \. )?\[|.* #", "a name in brackets or with #", 'write "name"'),
)
"""As `_STATEMENTS`, of what may stand within brackets as well."""


def way_out(text: str, error: Error) -> str | None:
    """What to write instead of a statement that failed as nothing here knows it; None = no other system does either."""
    if not _NOT_KNOWN.search(str(error)):
        return None
    statement, *nested = _parts(text)
    for pattern, what, instead in (*_STATEMENTS, *_QUERIES):
        if re.match(pattern, statement):
            return f"{what} is not supported: {instead}"
    for pattern, what, instead in _QUERIES:
        if any(re.match(pattern, part) for part in nested):
            return f"{what} is not supported: {instead}"
    return None


def _parts(text: str) -> Iterator[str]:
    """The tokens outside of all brackets, then those directly in each pair; names and strings in quotes are told apart
    from keywords."""
    parts: list[list[str]] = [[]]
    open_parts = [parts[0]]
    for token in scan(text):
        if token.key in (")", "]", "}") and len(open_parts) > 1:
            open_parts.pop()
        if token.key != ";":
            open_parts[-1].append(token.key if token.kind not in (QUOTED, STRING) else '""')
        if token.key in ("(", "[", "{"):
            parts.append([])
            open_parts.append(parts[-1])
    return (" ".join(part) for part in parts)
