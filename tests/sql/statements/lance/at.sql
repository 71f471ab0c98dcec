-- Older versions: AT, and the arguments of lance_scan.
-- `t` has versions 1 (1, 2), 2 (and 3; tag `two`) and 3 (without 1). Branch `dev` begins at version 2.

CREATE TABLE lance.t AS FROM (VALUES (1::BIGINT, 'a'), (2, 'b')) v(id, s);
--> 2
INSERT INTO t VALUES (3, 'c');
--> 1
CALL lance_create_tag('t', 'two', 2);
CREATE TABLE lance.u AS SELECT 5::BIGINT AS id;
--> 1
SET VARIABLE moment = (SELECT now() FROM t LIMIT 1);
DELETE FROM t WHERE id = 1;
--> 1
CALL lance_create_branch('t', 'dev', version => 2);

--= a version is asked for by number, tag, branch or time

SELECT list(id ORDER BY id) FROM t AT (VERSION => 1);
--> [1, 2]
SELECT list(id ORDER BY id) FROM t AT (VERSION => 1 + 1);
--> [1, 2, 3]
SELECT list(id ORDER BY id) FROM t AT (VERSION => 'two');
--> [1, 2, 3]
SELECT list(id ORDER BY id) FROM t AT (VERSION => 'dev:2');
--> [1, 2, 3]
SELECT list(id ORDER BY id) FROM t AT (VERSION => 'main');
--> [2, 3]
SELECT list(id ORDER BY id) FROM t AT (VERSION => 'main:1');
--> [1, 2]
SELECT list(id ORDER BY id) FROM lance.t AT (VERSION => 1);
--> [1, 2]
SELECT list(id ORDER BY id) FROM lance.main.t AS x AT (VERSION => 1);
--> [1, 2]
SELECT list(id ORDER BY id) FROM lance_scan('t', branch := 'main', tag := 'two');
--> [1, 2, 3]
SELECT list(id ORDER BY id) FROM t AT (TIMESTAMP => getvariable('moment'));
--> [1, 2, 3]

--= parameters stand for versions

PREPARE p AS SELECT count(*) FROM t AT (VERSION => ?);
EXECUTE p(1);
--> 2
EXECUTE p(2);
--> 3

PREPARE earlier AS SELECT id FROM t AT (VERSION => $1);
EXECUTE earlier('two');
--> 1
--> 2
--> 3
EXECUTE earlier(NULL);
--! InvalidInputError: … the version is empty
SELECT list(id ORDER BY id) FROM lance_scan('t', version := NULL);
--> [2, 3]

--= several versions stand in one statement

SELECT id FROM t EXCEPT SELECT id FROM t AT (VERSION => 1);
--> 3
FROM t AT (VERSION => 1) EXCEPT FROM t;
--> 1 | a
SELECT count(*) FROM t AT (VERSION => 1), t AT (VERSION => 2) AS x;
--> 6
SELECT t.id FROM t JOIN t AS b AT (VERSION => 1) USING (id);
--> 2
WITH old AS (FROM t AT (VERSION => 1)) SELECT count(*) FROM old;
--> 2
SELECT (SELECT max(id) FROM t AT (VERSION => 1)), max(id) FROM t;
--> 2 | 3
SELECT id FROM u WHERE EXISTS (FROM t AT (VERSION => 1) AS o WHERE o.id < u.id);
--> 5
WITH t AS (SELECT 4 AS id) FROM t;
--> 4

--= views and tables are made of a version

CREATE VIEW v AS SELECT * FROM t AT (VERSION => 1);
CREATE TABLE n AS FROM t AT (VERSION => 2);
--> 3
DELETE FROM t;
--> 2
SELECT (SELECT count(*) FROM v), (SELECT count(*) FROM n);
--> 2 | 3

--= a table is changed by what an older version of it has
--each target: t | lance.t | 't.lance'
--each older: t AT (VERSION => 1) | lance.t AT (VERSION => 1) | 't.lance' AT (VERSION => 1)

INSERT INTO {target} SELECT id + 10, s FROM {older};
--> 2
SELECT list(id ORDER BY id) FROM t;
--> [2, 3, 11, 12]
UPDATE {target} AS n SET s = o.s || '!' FROM {older} AS o WHERE o.id = n.id;
--> 1
SELECT s FROM t WHERE id = 2;
--> b!
DELETE FROM {target} WHERE id IN (SELECT id FROM {older});
--> 1
SELECT list(id ORDER BY id) FROM t;
--> [3, 11, 12]
MERGE INTO {target} AS n USING {older} AS o ON o.id = n.id WHEN NOT MATCHED THEN INSERT;
--> 2
SELECT list(id ORDER BY id) FROM t;
--> [1, 2, 3, 11, 12]

--= a transaction reads older versions beside its own

BEGIN;
INSERT INTO t VALUES (7, 'q');
--> 1
SELECT list(id ORDER BY id) FROM t AT (VERSION => 1);
--> [1, 2]
INSERT INTO t SELECT id + 10, s FROM t AT (VERSION => 1);
--> 2
SELECT list(id ORDER BY id) FROM lance.t;
--> [2, 3, 7, 11, 12]
ROLLBACK;
SELECT list(id ORDER BY id) FROM t;
--> [2, 3]

--= a path that is a string among others stays a string

INSERT INTO t SELECT 8, 't.lance' FROM 't.lance' WHERE 't.lance' IN ('x', 't.lance') AND id = 2;
--> 1
SELECT s FROM t WHERE id = 8;
--> t.lance

--= an unknown version is refused with those that exist

FROM t AT (VERSION => 9);
--! NotFoundError: … no version 9: expected one of 1 to 3
FROM t AT (VERSION => 'dev:9');
--! NotFoundError: … no version 9: expected one of 2;
FROM t AT (VERSION => 'nope');
--! NotFoundError: … no version, tag or branch 'nope': expected a tag (one of two), a branch (one of dev)
FROM t AT (VERSION => 'nope:1');
--! NotFoundError: … no branch 'nope': expected one of dev
FROM t AT (VERSION => 'dev:two');
--! NotFoundError: … tag 'two' is not on branch 'dev'
FROM t AT (TIMESTAMP => TIMESTAMP '2001-01-01');
--! NotFoundError: … 2001-01-01 00:00:00+00:00 is earlier than the first version of this table

--= the versions in an error leave out those that were removed

INSERT INTO t VALUES (4, 'd');
--> 1
SELECT count(*) FROM lance_cleanup('t', older_than => INTERVAL 0 DAYS, error_if_tagged_old_versions => false);
--> 1
FROM t AT (VERSION => 1);
--! NotFoundError: … no version 1: expected one of 2, 4;

--= bad times and several choices are refused

FROM t AT (TIMESTAMP => 'x');
--! InvalidInputError: … not a timestamp
FROM lance_scan('t', version := 1, tag := 'two');
--! InvalidInputError: … only one of version, tag and asof
DELETE FROM t AT (VERSION => 1);
--! Error
FROM t AT (VERSION => NULL);
--! InvalidInputError: … the version is empty
FROM t AT (TIMESTAMP => NULL);
--! InvalidInputError: … the time is empty
FROM t AT (VERSION => 99);
--! NotFoundError: … 99
FROM lance_scan('t', tag := 'nosuch');
--! NotFoundError: … nosuch
SELECT list(id ORDER BY id) FROM t;
--> [2, 3]

--= the time of a version is that version

SELECT rows FROM lance_versions('t') ORDER BY version;
--> 2
--> 3
--> 2
SELECT count(*) FROM t AT (TIMESTAMP => (SELECT timestamp FROM lance_versions('t') WHERE version = 1));
--> 2
SELECT count(*) FROM t AT (TIMESTAMP => (SELECT timestamp FROM lance_versions('t') WHERE version = 2));
--> 3
SELECT count(*) FROM t AT (TIMESTAMP => (SELECT timestamp FROM lance_versions('t') WHERE version = 3));
--> 2

--= a query gives the version
--each at: VERSION => (SELECT 1 + max(1)) | VERSION => (FROM (SELECT 'two')) | TIMESTAMP => (SELECT max(timestamp) FROM lance_versions('t') WHERE version < 3) | VERSION => (SELECT min(version) + 1 FROM lance_versions('t'))

SELECT count(*) FROM t AT ({at});
--> 3
BEGIN; DELETE FROM t WHERE id = 1;
--> 0
SELECT count(*) FROM t AT ({at});
--> 3
ROLLBACK;
INSERT INTO t SELECT * FROM t AT ({at});
--> 3

--= a column is no version

SELECT * FROM u AS d, t AT (VERSION => d.id);
--! InvalidInputError: … AT needs one version for all rows
SELECT * FROM u AS d, t AT (VERSION => id);
--! InvalidInputError: … AT needs one version for all rows
SELECT * FROM u AS d, t AT (TIMESTAMP => lance.u.id);
--! InvalidInputError: … AT needs one version for all rows

--= columns of an older version are qualified as the table is
--each name: lance.t | lance.main.t | ns.t | NS.main.T

ATTACH '{folder}' AS ns (TYPE lance);
SELECT max({name}.id), count({name}.s) FROM {name} AT (VERSION => 1) WHERE {name}.id > 1;
--> 2 | 1
BEGIN; DELETE FROM {name};
--> 2
SELECT max({name}.id), count({name}.s) FROM {name} AT (VERSION => 1) WHERE {name}.id > 1;
--> 2 | 1
ROLLBACK;
