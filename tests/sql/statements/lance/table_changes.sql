-- lance_table_changes: what changed from one version to the next.

CREATE TABLE lance.t WITH (enable_stable_row_ids = true) AS FROM (VALUES (1::BIGINT, 'a'), (2, 'b')) v(id, s);
--> 2
UPDATE t SET s = 'B' WHERE id = 2;
--> 1
DELETE FROM t WHERE id = 1;
--> 1
INSERT INTO t VALUES (3, 'c');
--> 1

--= bounds are versions, tags or times and both included

CALL lance_create_tag('t', 'two', version => 2);
--ordered
FROM lance_table_changes('t', 1);
--> 1 | 0 | insert | 1 | a
--> 1 | 1 | insert | 2 | b
--> 2 | 1 | update_preimage | 2 | b
--> 2 | 1 | update_postimage | 2 | B
--> 3 | 0 | delete | 1 | a
--> 4 | 2 | insert | 3 | c
--ordered
FROM lance_table_changes('t', NULL, 2);
--> 1 | 0 | insert | 1 | a
--> 1 | 1 | insert | 2 | b
--> 2 | 1 | update_preimage | 2 | b
--> 2 | 1 | update_postimage | 2 | B
--ordered
FROM lance_table_changes('t', 3, NULL);
--> 3 | 0 | delete | 1 | a
--> 4 | 2 | insert | 3 | c
--ordered
FROM lance_table_changes('t', 2, 3);
--> 2 | 1 | update_preimage | 2 | b
--> 2 | 1 | update_postimage | 2 | B
--> 3 | 0 | delete | 1 | a
--ordered
FROM lance_table_changes('t', 4, 4);
--> 4 | 2 | insert | 3 | c
--ordered
FROM lance_table_changes('t', 'two', 'two');
--> 2 | 1 | update_preimage | 2 | b
--> 2 | 1 | update_postimage | 2 | B
--ordered
FROM lance_table_changes('t', first_version := 3, last_version := 3);
--> 3 | 0 | delete | 1 | a
--ordered
FROM lance_table_changes('t', now() - INTERVAL 1 WEEK, now());
--> 1 | 0 | insert | 1 | a
--> 1 | 1 | insert | 2 | b
--> 2 | 1 | update_preimage | 2 | b
--> 2 | 1 | update_postimage | 2 | B
--> 3 | 0 | delete | 1 | a
--> 4 | 2 | insert | 3 | c
--ordered
FROM lance_table_changes('t', '2001-01-01', TIMESTAMP '2001-01-02');
--ordered
FROM lance_table_changes('t', 1, DATE '2001-01-01');
--ordered
FROM lance_table_changes('t', now() + INTERVAL 1 DAY, 4);

--= bounds that make no sense are refused

FROM lance_table_changes('t', 3, 2);
--! InvalidInputError: … the first version is newer than the last: found 3 and 2
FROM lance_table_changes('t', 3, 9);
--! NotFoundError: … no version 9: expected one of 1 to 4
FROM lance_table_changes('t', 0, 2);
--! NotFoundError: … no version 0: expected one of 1 to 4
FROM lance_table_changes('t', 9, now());
--! NotFoundError: … no version 9
FROM lance_table_changes('t', 'nope', 3);
--! InvalidInputError: … version 'nope' does not exist: expected a number, a time or a tag
FROM lance_table_changes('t', now(), now() - INTERVAL 1 DAY);
--! InvalidInputError: … the first version is newer than the last

--= changes compose as a relation

PREPARE inserted AS SELECT count(*) FROM lance.table_changes('t', 1) WHERE change_type = 'insert' AND id > ?;
EXECUTE inserted(1);
--> 2
PREPARE updated AS SELECT c.id, t.s FROM lance_table_changes('t', ?, ?) AS c JOIN t USING (id)
WHERE c.change_type LIKE 'update_post%';
EXECUTE updated(2, 4);
--> 2 | B
SELECT count(*) FROM lance_table_changes('t', 1);
--> 6
CREATE VIEW v AS SELECT s FROM lance_table_changes('t', 4);
INSERT INTO t VALUES (4, 'd');
--> 1
FROM v;
--> c
--> d

--= compactions, indexes and settings are no changes

OPTIMIZE t;
--> compact | … | …
CREATE INDEX i ON t (id);
CALL lance_set_config('t', 'a', 'b');
--> 1
SELECT DISTINCT operation FROM lance_versions('t') WHERE version > 4 ORDER BY 1;
--> CreateIndex
--> ReserveFragments
--> Rewrite
--> UpdateConfig
FROM lance_table_changes('t', 5);

--= columns are those of the last version

ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7;
ALTER TABLE t RENAME COLUMN s TO text;
ALTER TABLE t ALTER id TYPE INTEGER;
UPDATE t SET n = 8 WHERE id = 3;
--> 1
--ordered
SELECT snapshot_id, rowid, change_type, text, n, id FROM lance_table_changes('t', 4);
--> 4 | 2 | insert | c | NULL | 3
--> 8 | 2 | update_preimage | c | 7 | 3
--> 8 | 2 | update_postimage | c | 8 | 3
ALTER TABLE t DROP COLUMN text;
--ordered
SELECT * EXCLUDE rowid FROM lance_table_changes('t', 2, 3);
--> 2 | update_preimage | 2 | b
--> 2 | update_postimage | 2 | B
--> 3 | delete | 1 | a
FROM lance_table_changes('t', 9);

--= an overwrite matches columns by their names

COPY (SELECT 'z' AS s, 1.5::DOUBLE AS more, 9::BIGINT AS id) TO 't.lance' (MODE overwrite);
--> 1
--ordered
SELECT change_type, s, more, id FROM lance_table_changes('t', 5);
--> delete | B | NULL | 2
--> delete | c | NULL | 3
--> insert | z | 1.5 | 9

--= a column that returns has its values of before

CREATE TABLE lance.r AS SELECT 1 id, 'a' s;
--> 1
CREATE OR REPLACE TABLE lance.r AS SELECT 'x' z;
--> 1
CALL lance_restore('r', 1);
--> 3
--ordered
SELECT * EXCLUDE rowid FROM lance_table_changes('r', 1, 3);
--> 1 | insert | 1 | a
--> 2 | delete | 1 | a
--> 2 | insert | NULL | NULL
--> 3 | delete | NULL | NULL
--> 3 | insert | 1 | a

--= a column of the same name that was added anew is another

CREATE TABLE lance.r AS SELECT 1 id, 'a' s;
--> 1
ALTER TABLE r DROP COLUMN s;
ALTER TABLE r ADD COLUMN s VARCHAR;
--ordered
SELECT * EXCLUDE rowid FROM lance_table_changes('r', 1);
--> 1 | insert | 1 | NULL
CALL lance_restore('r', 1);
--> 4
--ordered
SELECT * EXCLUDE rowid FROM lance_table_changes('r', 1, 1);
--> 1 | insert | 1 | a
--ordered
SELECT * EXCLUDE rowid FROM lance_table_changes('r', 1) LIMIT 1;
--> 1 | insert | 1 | a
