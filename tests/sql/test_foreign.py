"""Statements of other systems: they say what to write here, and nothing that works is taken for one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lakedbapi

FOREIGN = [
    ("SHOW PARTITIONS t", "files"),
    ("SHOW INDEX FROM t", "no indexes"),
    ("SHOW search_path", "SHOW has TABLES"),
    ("SHOW TRANSACTION ISOLATION LEVEL", "SHOW has TABLES"),
    ("SHOW FULL TABLES", "SHOW ALL TABLES"),
    ("DESCRIBE EXTENDED t", "SHOW TBLPROPERTIES t"),
    ("DESC TABLE FORMATTED t", "SHOW TBLPROPERTIES t"),
    ("DESCRIBE DETAIL t", "DESCRIBE HISTORY t"),
    ("CREATE TABLE u (id INT) LOCATION '/x'", "where their catalog puts them"),
    ("CREATE TABLE u (id INT) ENGINE=InnoDB", "where their catalog puts them"),
    ("CREATE EXTERNAL TABLE u (id INT)", "CREATE TABLE"),
    ("CREATE TABLE u SHALLOW CLONE t", "AS SELECT"),
    ("ALTER TABLE t MODIFY COLUMN id BIGINT", "ALTER COLUMN c TYPE"),
    ("ALTER TABLE t ALTER COLUMN id COMMENT 'x'", "COMMENT ON COLUMN"),
    ("ALTER TABLE t SET SCHEMA s", "CREATE TABLE new AS"),
    ("ALTER TABLE t ADD PARTITION FIELD bucket(4, id)", "SET PARTITIONED BY"),
    ("ALTER TABLE t ADD PARTITION (id = 1)", "INSERT makes them"),
    ("ALTER TABLE t WRITE ORDERED BY id", "SET SORTED BY"),
    ("UNDROP TABLE t", "FOR VERSION AS OF n"),
    ("CALL lake.system.rollback_to_snapshot('t', 1)", "RESTORE TABLE"),
    ("CALL set_current_snapshot('t', 1)", "RESTORE TABLE"),
    ("CALL cherrypick_snapshot('t', 1)", "fast_forward"),
    ("SELECT * FROM delta.`/data/t`", "ATTACH"),
    ("DELETE FROM delta.`/data/t` WHERE id = 1", "ATTACH"),
    ("SELECT * FROM t.snapshots", "history('t')"),
    ("SELECT count(*) FROM lake.main.t.refs AS r", "refs('t')"),
    ("SELECT * FROM main.t.files", "files('t')"),
    ("SELECT * FROM t LIMIT 1, 2", "LIMIT count OFFSET offset"),
    ("SELECT * FROM (SELECT 1 AS a) q LIMIT ?, 2", "LIMIT count OFFSET offset"),
    ("SELECT TOP 5 * FROM t", "LIMIT n"),
    ("SELECT TOP (5) id FROM t", "LIMIT n"),
    ("SELECT * INTO u FROM t", "CREATE TABLE new AS SELECT"),
    ("SELECT * FROM t WITH (NOLOCK)", "leave it out"),
    ("SELECT * FROM t WHERE v RLIKE 'a'", "regexp_matches"),
    ("SELECT * FROM t WHERE id <=> 1", "IS NOT DISTINCT FROM"),
    ("SELECT id FROM t MINUS SELECT 1", "EXCEPT"),
    ("SELECT 1 FROM DUAL", "SELECT 1"),
    ("DELETE FROM t LIMIT 1", "WHERE id IN"),
    ("DELETE FROM t WHERE id = 1 ORDER BY id LIMIT 1", "WHERE id IN"),
    ("UPDATE t SET v = 'x' WHERE id = 1 LIMIT 1", "WHERE id IN"),
    ("UPDATE t JOIN t u ON t.id = u.id SET t.v = 'x'", "UPDATE t SET … FROM u"),
    ("DELETE t WHERE id = 1", "DELETE FROM t"),
    ("DROP TABLE IF EXISTS t, u", "DROP for each"),
    ("DROP VIEW v, w", "DROP for each"),
    ("TRUNCATE t, u", "TRUNCATE for each"),
    ("TRUNCATE TABLE t RESTART IDENTITY", "empties just this table"),
    ("INSERT OVERWRITE TABLE t SELECT * FROM t", "BEGIN, DELETE"),
    ("INSERT IGNORE INTO t VALUES (1, 'x')", "INSERT OR IGNORE"),
    ("INSERT INTO t VALUES (1, 'x') ON DUPLICATE KEY UPDATE v = 'x'", "ON CONFLICT"),
    ("INSERT INTO t SET id = 1", "VALUES"),
    ("INSERT t VALUES (1, 'x')", "INSERT INTO t"),
    ("EXPLAIN EXTENDED SELECT 1", "EXPLAIN ANALYZE"),
    ("EXPLAIN (ANALYZE, BUFFERS) SELECT 1", "EXPLAIN ANALYZE"),
    ("SELECT SAFE_CAST('x' AS INT)", r"TRY_CAST"),
    ("SHOW TABLES IN DATABASE lake", "SHOW TABLES IN schema"),
    ("SHOW SCHEMAS FROM CATALOG lake", "SHOW SCHEMAS IN catalog"),
    ("COMMIT AND CHAIN", "BEGIN anew"),
    ("USE SCHEMA main", "USE schema"),
    ("DECLARE c CURSOR FOR SELECT 1", "fetchmany"),
    ("VACUUM FULL t", "OPTIMIZE t"),
    ("BEGIN TRANSACTION READ ONLY", "read_only=True"),
    ("CREATE TABLE u (id INT, INDEX (id))", "no indexes"),
    ("CREATE TABLE u (id INT, KEY k (id))", "no indexes"),
    ("CREATE TABLE u (id INT, INDEX idx (id) USING BTREE)", "no indexes"),
    ("CREATE TABLE u (id INT, FULLTEXT KEY (id))", "no indexes"),
    ("CREATE TABLE u (id INT, CONSTRAINT pk PRIMARY KEY CLUSTERED (id))", "SORTED BY"),
    ("CREATE TABLE u (id INT PRIMARY KEY NONCLUSTERED)", "no indexes"),
    ("CREATE TABLE u (v TEXT CHARACTER SET utf8)", "UTF-8"),
    ("CREATE TABLE u (d TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)", "in each UPDATE"),
    ("CREATE TABLE u (id INT, c AS id * 2)", "GENERATED ALWAYS AS"),
    ("CREATE TABLE u (id INT) DEFAULT CHARSET=utf8", "leave it out"),
    ("CREATE TABLE u (id INT) AUTO_INCREMENT=5", "leave it out"),
    ("CREATE TABLE u (id INT) OPTIONS(description='x')", "COMMENT"),
    ("CREATE TABLE u (id INT OPTIONS(description='x'))", "COMMENT"),
    ("CREATE TABLE u (id INT) INHERITS (t)", "leave it out"),
    ("CREATE TABLE u (id INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))", "month(ts)"),
    ("CREATE TABLE u (id INT) CLUSTERED BY (id) INTO 4 BUCKETS", "bucket(n, c)"),
    ("CREATE TABLE u SELECT * FROM t", "AS SELECT"),
    ("CREATE TRANSIENT TABLE u (id INT)", "leave it out"),
    ("CREATE FOREIGN TABLE u (id INT) SERVER y", "CREATE TABLE"),
    ("CREATE SNAPSHOT TABLE u CLONE t", "FOR VERSION AS OF"),
    ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1", "CREATE MACRO"),
    ("CREATE SCHEMA n COMMENT 'x'", "COMMENT ON SCHEMA"),
    ("CREATE TABLE [dbo].[u] (id INT)", 'write "name"'),
    ("SELECT * FROM [t]", 'write "name"'),
    ("ALTER TABLE t ALTER COLUMN v NVARCHAR(100)", "TYPE …"),
    ("ALTER TABLE t COMMENT = 'x'", "COMMENT ON TABLE"),
    ("ALTER TABLE t ENGINE=InnoDB", "ALTER TABLE has"),
    ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE has"),
    ("ALTER TABLE ONLY t ADD c INT", "leave it out"),
    ("ALTER SEQUENCE s RESTART", "schemas, tables"),
    ("ALTER VIEW v AS SELECT 2", "CREATE OR REPLACE VIEW"),
    ("RENAME TABLE t TO u", "RENAME TO"),
    ("EXEC sp_rename 't', 'u'", "RENAME TO"),
    ("DELETE FROM t, u USING t JOIN u", "for each"),
    ("DELETE FROM t WHERE CURRENT OF c", "by key"),
    ("DELETE FROM t OUTPUT deleted.id WHERE id = 1", "RETURNING"),
    ("INSERT INTO t (id) OUTPUT inserted.id VALUES (1)", "RETURNING"),
    ("UPDATE a SET v = 'x' FROM t a JOIN t b ON a.id = b.id", "UPDATE t AS a SET"),
    ("DELETE FROM a USING t AS a, t b", "DELETE FROM t AS a"),
    ("UPDATE IGNORE t SET v = 'x'", "leave it out"),
    ("MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHERE s.id > 1", "MATCHED AND"),
    ("MERGE INTO t USING t s ON false WHEN NOT MATCHED THEN INSERT ROW", "INSERT *"),
    ("INSERT INTO t (id, v) VALUE (1, 'x')", "VALUES"),
    ("INSERT INTO t REPLACE WHERE id = 1 SELECT * FROM t", "DELETE FROM"),
    ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "by itself"),
    ("WITH d AS (DELETE FROM t RETURNING *) INSERT INTO t SELECT * FROM d", "by itself"),
    ("DROP TABLE t CASCADE CONSTRAINTS", "DROP TABLE t"),
    ("TRUNCATE TABLE t PARTITION (id = 1)", "DELETE FROM"),
    ("SELECT * FROM t CROSS APPLY (SELECT 1) x", "LATERAL"),
    ("SELECT * FROM t CONNECT BY PRIOR id = id", "WITH RECURSIVE"),
    ("SELECT @@version", "version()"),
    ("SELECT id FROM t WHERE now() > now() - INTERVAL ? DAY", "INTERVAL (?) DAY"),
    ("SELECT id FROM t WHERE now() > DATE ?", "CAST(? AS DATE)"),
    ("USE WAREHOUSE w", "USE schema"),
    ("GO", "executescript"),
    ("COMMIT TRAN", "BEGIN anew"),
    ("UNLOCK TABLES", "one snapshot"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "reads one snapshot"),
]

NESTED = [
    ("SELECT (SAFE_CAST(v AS INT)) FROM t", "TRY_CAST"),
    ("SELECT coalesce(abs(SAFE_CAST(v AS INT)), 0) FROM t", "TRY_CAST"),
    ("SELECT [SAFE_CAST(v AS INT)] FROM t", "TRY_CAST"),
    ("SELECT {'a': SAFE_CAST(v AS INT)} FROM t", "TRY_CAST"),
    ("DELETE FROM t WHERE id IN (SELECT SAFE_CAST(v AS INT) FROM t)", "TRY_CAST"),
    ("INSERT INTO t VALUES (SAFE_CAST('1' AS INT), 'a')", "TRY_CAST"),
    ("UPDATE t SET id = (SAFE_CAST(v AS INT))", "TRY_CAST"),
    ("CREATE VIEW x AS SELECT * FROM (SELECT TOP 1 id FROM t)", "LIMIT n"),
    ("SELECT (SELECT TOP 1 id FROM t)", "LIMIT n"),
    ("SELECT * FROM (SELECT id FROM t LIMIT 1, 2)", "LIMIT count OFFSET offset"),
    ("SELECT * FROM t WHERE (v RLIKE 'a' OR id = 1)", "regexp_matches"),
    ("SELECT * FROM t WHERE NOT (id <=> 1)", "IS NOT DISTINCT FROM"),
    ("WITH x AS (SELECT 1 FROM dual) SELECT * FROM x", "leave out FROM"),
    ("SELECT * FROM (SELECT id FROM t MINUS SELECT 1)", "EXCEPT"),
    ("SELECT coalesce(@@version, 'x')", "version()"),
    ("SELECT * FROM (SELECT * FROM delta.`/path`)", "connect('delta:///path')"),
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakedbapi.Connection]:
    with lakedbapi.connect(str(tmp_path_factory.mktemp("lake"))) as connection:
        connection.execute("CREATE TABLE t (id INT, v VARCHAR)")
        connection.commit()
        yield connection


@pytest.mark.parametrize(("statement", "way_out"), [*FOREIGN, *NESTED])
def test_a_statement_of_another_system_says_what_to_write(
    connection: lakedbapi.Connection, statement: str, way_out: str
) -> None:
    with pytest.raises(lakedbapi.NotSupportedError) as caught:
        connection.execute(statement, (1,) if "?" in statement else None)
    connection.rollback()
    assert way_out in str(caught.value)
    assert caught.value.statement == statement


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT nosuch FROM t WHERE v = 'limit 1, 2'", "nosuch"),
        ("CREATE VIEW x AS SELECT location FRM t", "syntax error"),
        ("ALTER TABLE t RENAM COLUMN first TO x", "expected ADD, DROP"),
        ("SELECT * FROM tt", "did you mean t"),
        ("DELETE FROM nosuch", "nosuch does not exist"),
        ("DELETE FROM nosuch USING t WHERE nosuch.id = t.id", "nosuch does not exist"),
        ("SELECT * FROM nosuch.t", "no schema or catalog nosuch"),
        ("CALL nosuch('t')", "no procedure nosuch"),
        ("SELCT 1", "expected a statement"),
        ("SELECT (list, print) FRM t", "syntax error"),
        ("SELECT nosuch FROM (SELECT 1 FROM t WHERE v = 'x <=> y SAFE_CAST')", "nosuch"),
        ("CREATE TABLE u (top INT, limit INT, other INT", "syntax|expected"),
    ],
)
def test_other_errors_stay_as_they_are(connection: lakedbapi.Connection, statement: str, message: str) -> None:
    with pytest.raises(lakedbapi.ProgrammingError, match=message):
        connection.execute(statement)
    connection.rollback()


def test_names_that_other_systems_use_as_keywords_are_names(connection: lakedbapi.Connection) -> None:
    connection.execute('CREATE TABLE location (top INT, "limit" INT, map INT, partitions INT)')
    connection.execute("INSERT INTO location VALUES (1, 2, 3, 4), (5, 6, 7, 8)")
    assert connection.execute('SELECT top FROM location WHERE map < 4 AND "limit" > 1').fetchall() == [(1,)]
    assert connection.execute("DELETE FROM location WHERE map < 4 AND top > 0").rowcount == 1
    assert connection.execute("SHOW location").fetchone()[0] == "top"
    connection.execute("CREATE TABLE partitions (extended INT)")
    assert connection.execute("SHOW partitions").fetchone()[0] == "extended"
    connection.rollback()


def test_errors_on_executemany_say_it_as_well(connection: lakedbapi.Connection) -> None:
    with pytest.raises(lakedbapi.NotSupportedError, match="WHERE id IN"):
        connection.executemany("UPDATE t SET v = ? LIMIT 1", [("x",), ("y",)])
