-- What versions, files and settings of a table are, as relations; and the procedures about versions.

CREATE TABLE lance.trips AS SELECT i AS id, ['a', 'b', 'c', 'a', 'b'][i + 1] AS city FROM range(5) r(i);
--> 5
INSERT INTO trips VALUES (5, 'x'), (6, 'y'), (7, 'z');
--> 3
CALL lance_create_tag('trips', 'second', 2);
DELETE FROM trips WHERE id = 6;
--> 1

--= versions say what each did

--ordered
SELECT version, operation, rows, fragments, files, tags, message FROM lance_versions('trips');
--> 1 | Overwrite | 5 | 1 | 1 | [] | NULL
--> 2 | Append | 8 | 2 | 2 | ['second'] | NULL
--> 3 | Delete | 7 | 2 | 2 | [] | NULL
SELECT bool_and(bytes > 0 AND timestamp <= now()) FROM lance_versions('trips');
--> true

--= functions compose as relations

PREPARE p AS SELECT v.version FROM lance_versions('trips') AS v JOIN lance.tags('trips') AS t USING (version)
WHERE v.rows > ? AND v.operation LIKE 'App%';
EXECUTE p(5);
--> 2
SELECT count(*) FROM lance_versions('trips') WHERE version BETWEEN 2 AND 3;
--> 2
CREATE VIEW v AS SELECT max(version) FROM lance_versions('trips');
DELETE FROM trips WHERE id = 0;
--> 1
FROM v;
--> 4
CREATE TABLE kept AS FROM lance.fragments('lance.trips');
--> 2
SELECT rows, deleted_rows FROM kept;
--> 4 | 1
--> 2 | 1
CREATE TABLE lance.log AS SELECT version, operation FROM lance_versions('trips');
--> 4
SELECT max(version) FROM log;
--> 4

--= fragments of a version

SELECT * EXCLUDE (bytes, deletion_file) FROM lance_fragments('trips');
--> 0 | 5 | 0 | 5 | 1
--> 1 | 2 | 1 | 3 | 1
SELECT count(*) FROM lance_fragments('trips', version := 1);
--> 1

--= indexes and settings

CREATE INDEX by_city ON trips (city);
CALL lance_set_config('trips', 'some.key', '1');
--> 1
INSERT INTO trips VALUES (9, 'q');
--> 1
SELECT index_name, fields, rows_indexed FROM lance_indexes('trips');
--> by_city | city | 7
SELECT index_name FROM lance.indices('trips', version := 3);
FROM lance.config('trips') WHERE key = 'some.key';
--> some.key | 1
FROM lance_config('trips', version := 1) WHERE key = 'some.key';
SELECT version, rows, deleted_rows, fragments, indexes, stable_row_ids FROM lance_info('trips');
--> 6 | 8 | 1 | 3 | ['by_city'] | false
SELECT version, latest_version, tags, rows FROM lance_info('trips', tag := 'second');
--> 2 | 6 | ['second'] | 8

--= tables and versions that are not there are refused

FROM lance_versions(NULL);
--! InvalidInputError: … lance_versions needs a table
FROM lance_versions('nope.lance');
--! NotFoundError: … nope.lance
FROM lance_files('trips', version := 9);
--! NotFoundError: … no version 9: expected one of 1 to 3
FROM lance_info('trips', version := 1, tag := 'second');
--! InvalidInputError: … only one of version, tag and asof
FROM lance_versions('trips', branch := 'x');
--! NotFoundError: … no branch 'x'
CALL lance_restore('trips', 9);
--! NotFoundError: … no version 9: expected one of 1 to 3
CALL lance_restore('trips', NULL);
--! InvalidInputError: … needs a version
CALL lance_create_tag('trips', 'second');
--! AlreadyExistsError: … second
CALL lance_delete_tag('trips', 'nope');
--! NotFoundError: … nope
CALL lance_create_tag('trips', NULL);
--! InvalidInputError: … needs a tag
CALL lance_create_branch('trips', 'x', version => 'nope');
--! NotFoundError: … no version, tag or branch
CALL lance_create_branch('trips', 'dev');
CALL lance_restore('trips', 'dev');
--! InvalidInputError: … the version belongs to another branch: expected one of main, found dev

--= names of others are left alone

CREATE SCHEMA s;
CREATE MACRO s.versions(x) AS TABLE SELECT x + 1 AS y;
FROM s.versions(1);
--> 2
SELECT {'files': 1}.files, t.config FROM (SELECT 3 AS config) AS t;
--> 1 | 3

--= a commit message needs a transaction

CALL lance_set_commit_message('ann', 'x');
--! InvalidInputError: … needs an open transaction; run it between BEGIN and COMMIT
CALL lance_set_commit_message('ann');
--! InvalidInputError: … argument 'message' is missing

--= restore makes the table what it was
--each version: 1 | 'first'

CALL lance_create_tag('trips', 'first', 1);
CALL lance_restore('trips', {version});
--> 4
SELECT count(*) FROM trips;
--> 5
SELECT operation FROM lance_versions('trips') WHERE version = 4;
--> Restore

--= tags and branches come and go

CALL lance_create_tag('trips', 'a');
CALL lance.create_tag('trips', 'b', version => 1);
CALL lance_update_tag('trips', 'b', version => 'second');
CALL lance_delete_tag('lance.trips', 'second');
SELECT tag, version FROM lance_tags('trips');
--> a | 3
--> b | 2
CALL lance_create_branch('trips', 'dev');
CALL lance_create_tag('trips', 'on_dev', version => 'dev');
SELECT branch FROM lance_tags('trips') WHERE tag = 'on_dev';
--> dev
CALL lance_delete_tag('trips', 'on_dev');
CALL lance_delete_branch('trips', 'dev');
SELECT branch FROM lance_branches('trips');
--> main

--= restore and references are refused in transactions and on connections for reading

BEGIN;
CALL lance_restore('trips', 1);
--! UnsupportedError: … in a transaction
ROLLBACK;
--on reader
CALL lance_create_tag('trips', 'x');
--! UnsupportedError: … read-only

--= tables of attached folders are found by their database

ATTACH 'more' AS more (TYPE lance);
CREATE TABLE more.trips AS SELECT 1 AS x;
--> 1
SELECT rows FROM more.versions('trips');
--> 1
SELECT rows FROM lance_info('more.trips');
--> 1
SELECT rows FROM lance.info('trips');
--> 7
CALL more.create_tag('trips', 'only');
SELECT tag FROM lance_tags('trips', database := 'more');
--> only

--= facts are those of now

CREATE VIEW settings AS FROM lance_config('trips');
SELECT count(*) FROM settings WHERE Key = 'a';
--> 0
CALL lance_set_config(trips, 'a', 'b');
--> 1
SELECT count(*) FROM settings WHERE Key = 'a';
--> 1

--= settings and metadata are rows by key

CALL lance_set_config(trips, 'b', '2');
--> 1
CALL lance_set_config(trips, 'a', 'it''s');
--> 1
CALL lance_set_table_metadata(trips, 'owner', 'ann');
--> 1
CALL lance_set_schema_metadata(trips, 'k', 'v');
--> 1
CALL lance_set_column_metadata(trips, 'id', 'unit', 'm');
--> 1
FROM lance_config('trips') WHERE Key < 'c';
--> a | it's
--> b | 2
SELECT value FROM lance_table_metadata('trips') WHERE key = 'owner';
--> ann
FROM lance_schema_metadata('trips');
--> k | v
FROM lance_column_metadata('trips', 'ID');
--> unit | m
FROM lance_column_metadata('trips', 'city');
SELECT c.Key, i.index_name FROM lance_config('trips') c LEFT JOIN lance_indexes('trips') i ON true LIMIT 1;
--> a | NULL

--= tables and columns of facts that are not there are errors

FROM lance_indexes('nowhere.lance');
--! NotFoundError: … nowhere
FROM lance_column_metadata('trips', 'nope');
--! UnknownColumnError: … nope
FROM lance_config(NULL);
--! InvalidInputError: … lance_config needs a table

--= a transaction sees no versions that others make meanwhile

BEGIN;
SELECT count(*) FROM trips;
--> 7
--on other
DELETE FROM trips WHERE id = 1;
--> 1
SELECT list(version ORDER BY version) FROM lance_versions('trips');
--> [1, 2, 3]
DELETE FROM trips WHERE id = 0;
--> 1
SELECT list(version ORDER BY version) FROM lance_versions('trips');
--> [1, 2, 3]
SELECT count(*) FROM trips AT (VERSION => 4);
--> 6
COMMIT;
SELECT list(version ORDER BY version) FROM lance_versions('trips');
--> [1, 2, 3, 4, 5]
