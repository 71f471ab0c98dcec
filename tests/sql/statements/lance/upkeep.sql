-- OPTIMIZE, VACUUM, CHECKPOINT and automatic cleanup of Lance tables, and the procedures for the same.
-- `small` has four fragments of one row each, as four versions.

CREATE TABLE lance.small AS SELECT 0::BIGINT AS id;
--> 1
INSERT INTO small VALUES (1);
--> 1
INSERT INTO small VALUES (2);
--> 1
INSERT INTO small VALUES (3);
--> 1

--= small fragments are joined
--each sql: OPTIMIZE small | OPTIMIZE TABLE lance.small
--each sql: OPTIMIZE 'small.lance' WITH (target_rows_per_fragment = 1048576, max_bytes_per_file = 0, num_threads = 0)
--each sql: CALL lance_compact('small') | CALL lance_compact(lance.small, target_rows_per_fragment => 100)
--each sql: CALL lance.compact('small.lance', materialize_deletions_threshold = 0.5)

{sql};
--~ "version": 6, "fragments_removed": 4, "fragments_added": 1, "files_removed": 4, "files_added": 1
SELECT count(*) FROM lance_fragments('small');
--> 1
SELECT id FROM small ORDER BY id;
--> 0
--> 1
--> 2
--> 3

--= a dry run of compaction says what would be joined
--each sql: OPTIMIZE small WITH (dry_run = true) | CALL lance_compact(small, dry_run => true)

{sql};
--~ "dry_run": true, "tasks": 1, "fragments_removed": 4
SELECT count(*) FROM lance_fragments('small');
--> 4

--= all versions are young
--each sql: VACUUM small | VACUUM lance.small WITH (older_than = '7 days')
--each sql: CALL lance_cleanup(small, older_than => '7 days')

{sql};
--~ "old_versions": 0
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [1, 2, 3, 4]

--= some old versions are kept
--each sql: VACUUM LANCE 'small.lance' WITH (older_than_seconds = 0, retain_n_versions = 3)
--each sql: CALL lance_cleanup('small', older_than => INTERVAL 0 DAYS, retain => 3)

{sql};
--~ "old_versions": 1
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [2, 3, 4]

--= two old versions are removed
--each sql: VACUUM LANCE small WITH (older_than = '0s', retain_versions = 2, delete_unverified)
--each sql: CALL lance_cleanup(small, older_than_seconds => 0, retain_versions => 2)

{sql};
--~ "old_versions": 2
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [3, 4]

--= a version is removed by its number
--each sql: VACUUM lance.main.small WITH (versions = [2]) | CALL lance_cleanup(small, versions => [2])

{sql};
--~ "old_versions": 1
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [1, 3, 4]

--= all old versions are removed

VACUUM small WITH (older_than = INTERVAL '0 seconds');
--~ "old_versions": 3
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [4]

--= a dry run of cleanup removes nothing
--each sql: VACUUM small WITH (older_than_seconds = 0, dry_run = true)
--each sql: CALL lance_cleanup(small, older_than => INTERVAL 0 DAYS, dry_run => true)

{sql};
--~ "old_versions": 3
--~ "dry_run": true
SELECT count(*) FROM lance_versions('small');
--> 4

--= tagged versions are not removed silently

CALL lance_create_tag('small', 'second', 2);
VACUUM small WITH (older_than_seconds = 0);
--! ReferencedError: … second
VACUUM small WITH (older_than_seconds = 0, error_if_tagged_old_versions = false);
--~ "old_versions": 2

--= CHECKPOINT is all upkeep

CREATE INDEX i ON small (id) WITH (train = false);
CHECKPOINT small;
--> compact | … | …
--> optimize_index | … | …
--> cleanup | … | …
SELECT index_name, rows_indexed FROM lance_indexes('small');
--> i | 4
SELECT count(*) FROM lance_fragments('small');
--> 1
SELECT count(*) FROM small WHERE id = 3;
--> 1

--= CHECKPOINT tells what it did

CREATE INDEX i ON small (id) WITH (train = false);
CHECKPOINT small;
--~ "fragments_removed": 4
--~ "i": {"rows_indexed": 4, "segments": 1}
--~ "old_versions": 0

--= CHECKPOINT and VACUUM without a table are those of DuckDB

CHECKPOINT; VACUUM; CHECKPOINT memory;
CREATE TEMP TABLE own (a INTEGER); VACUUM own;
SELECT version FROM lance_info('small');
--> 4

--= a table may be called as a word of the statement
--each name: analyze | lance | table

CREATE TABLE lance."{name}" AS SELECT 1 AS id;
--> 1
VACUUM "{name}";
--> cleanup | … | …
OPTIMIZE "{name}";
--> compact | … | …

--= words of VACUUM may name a table

CREATE TABLE lance.analyze AS SELECT 1 AS id;
--> 1
CREATE TABLE lance.lance AS SELECT 1 AS id;
--> 1
VACUUM analyze;
--> cleanup | … | …
VACUUM lance WITH (dry_run);
--> cleanup | … | …

--= indexes follow by a procedure

CREATE INDEX i ON small (id); CREATE INDEX j ON small (id); INSERT INTO small VALUES (4);
--> 1
CALL lance_optimize_indexes(small, index => 'j');
--~ "indexes": {"j": {"rows_indexed": 5, "segments": 1}}
CALL lance_optimize_indexes('small', retrain = true, memory_limit = '8MB');
--~ "indexes": {"i": {"rows_indexed": 5, "segments": 1}, "j": {"rows_indexed": 5, "segments": 1}}

--= a memory limit is a number of bytes

CREATE INDEX i ON small (id); INSERT INTO small VALUES (4);
--> 1
ALTER INDEX i ON small OPTIMIZE WITH (memory_limit = 'much');
--! InvalidInputError: … memory_limit: not a number of bytes
CALL lance_optimize_indexes(small, memory_limit => 'much');
--! InvalidInputError: … memory_limit: not a number of bytes
CALL lance_compact(small, memory_limit => 'much');
--! InvalidInputError: … memory_limit: not a number of bytes
ALTER INDEX i ON small OPTIMIZE WITH (memory_limit = '8 MB');
--> optimize_index | … | …
CALL lance_optimize_indexes(small, memory_limit => 8000000);
--> optimize_index | … | …
CALL lance_compact(small, memory_limit => 8000000);
--> compact | … | …
CALL lance_compact(small, memory_limit => '8 MB');
--> compact | … | …
SELECT rows_indexed FROM lance_indexes('small');
--> 5

--= automatic cleanup is set, shown and unset

SHOW MAINTENANCE ON small;
--> enabled | false
ALTER TABLE small SET AUTO_CLEANUP WITH (interval = 2, older_than = '1h', retain_versions = 3);
SHOW MAINTENANCE FROM lance.small;
--> enabled | true
--> interval | 2
--> older_than | 1h
--> retain_versions | 3
SELECT value FROM lance_config('small') WHERE key = 'lance.auto_cleanup.interval';
--> 2
ALTER TABLE 'small.lance' SET AUTO_CLEANUP (older_than => INTERVAL '1 day 500 ms');
SHOW MAINTENANCE ON 'small.lance';
--> enabled | true
--> interval | 20
--> older_than | 86400s 500000us
--> retain_versions | 3
ALTER TABLE lance.small UNSET AUTO_CLEANUP;
SHOW MAINTENANCE ON small;
--> enabled | false

--= a table cleans up after itself once it is told to

ALTER TABLE small SET AUTO_CLEANUP WITH (interval = 1, older_than = '0s');
INSERT INTO small VALUES (9);
--> 1
SELECT count(*) <= 2 FROM lance_versions('small');
--> true

--= settings and metadata are set and unset

CALL lance_set_config('small', 'a', 'b');
--> 1
CALL lance_set_table_metadata(small, 'owner', 'ann');
--> 1
CALL lance_set_schema_metadata(lance.small, 'k', 'v');
--> 1
CALL lance_set_column_metadata('small.lance', 'id', 'unit', value => 'm');
--> 1
FROM lance_config('small') WHERE Key = 'a';
--> a | b
FROM lance_table_metadata('small');
--> owner | ann
FROM lance_schema_metadata('small');
--> k | v
FROM lance_column_metadata('small', 'id');
--> unit | m
CALL lance_unset_config('small', 'a'); CALL lance_unset_table_metadata(small, 'owner');
--> 1
CALL lance_unset_schema_metadata(small, 'k'); CALL lance_unset_column_metadata(small, 'id', 'unit');
--> 1
FROM lance_config('small') WHERE Key = 'a';
FROM lance_table_metadata('small');
FROM lance_schema_metadata('small');
FROM lance_column_metadata('small', 'id');
CALL lance_set_config('small', 'a', NULL);
--! InvalidInputError: lance_set_config needs a value: expected a string, found NULL

--= forms of upkeep that make no sense are refused

OPTIMIZE small WITH (target_rows = 5);
--! WrongTypeError: … did you mean 'target_rows_per_fragment'
OPTIMIZE small WITH (target_rows_per_fragment = 'many');
--! InvalidInputError: … target_rows_per_fragment
OPTIMIZE small WITH;
--! InvalidInputError: … expected WITH (name = value, …), found WITH
OPTIMIZE small rubbish;
--! InvalidInputError: … found rubbish
OPTIMIZE small WITH (num_threads = 1, num_threads = 2);
--! InvalidInputError: … given twice
OPTIMIZE small WITH (1);
--! InvalidInputError: … expected name = value, found 1
VACUUM small WITH (older_than = true);
--! InvalidInputError: … older_than
VACUUM small WITH (older_than = '3 moons');
--! InvalidInputError: … not a time span
VACUUM small WITH (retain = 1, retain_versions = 2);
--! InvalidInputError: … two options with the same meaning
VACUUM small WITH (retain = 0);
--! InvalidInputError: … retain_versions
CALL lance_cleanup(small, older => 3);
--! WrongTypeError: … unknown argument 'older'
CALL lance_compact();
--! InvalidInputError: … argument 'table' is missing
CALL lance_compact(NULL);
--! InvalidInputError: … lance_compact needs a table
CALL lance_compact('nowhere');
--! nowhere
ALTER TABLE small SET AUTO_CLEANUP (interval = 0);
--! InvalidInputError: … a number above 0
ALTER TABLE small SET AUTO_CLEANUP (every = 3);
--! WrongTypeError: … unknown option 'every'
ALTER TABLE small SET AUTO_CLEANUP (older_than = 'soon');
--! InvalidInputError: … not a time span
ALTER TABLE small UNSET AUTO_CLEANUP (interval = 3);
--! WrongTypeError: … unknown option 'interval'
CHECKPOINT small WITH (dry_run);
--! WrongTypeError: … CHECKPOINT small: unknown option 'dry_run'
REINDEX small rubbish;
--! InvalidInputError: … REINDEX small: unexpected text after the statement: … found rubbish
REINDEX small WITH (mode = 'append', retrain);
--! InvalidInputError: … retrain cannot be combined with another mode
CALL lance_compact(small, target_rows => 1);
--! WrongTypeError: … did you mean 'target_rows_per_fragment'
CALL lance_cleanup(small, retain => 1, retain_versions => 1);
--! InvalidInputError: … found retain, retain_
CALL lance_create_scalar_index(small, NULL, 'k');
--! InvalidInputError: … needs a column
CALL lance_compct('small');
--! NotFoundError: CALL lance_compct: no such procedure; did you mean 'lance_compact'
SELECT version FROM lance_info('small');
--> 4

--= EXPLAIN names the index

CREATE INDEX i ON small (id);
EXPLAIN ALTER INDEX i ON small OPTIMIZE;
--~ The index i would be brought up to date

--= procedures of DuckDB are its own

CREATE MACRO compact(t) AS TABLE SELECT t AS t;
FROM compact('small');
--> small
CALL nope('small');
--! Error
CALL lance_nothing_like_it('small');
--! Error
CREATE TEMP MACRO lance_compct(t) AS TABLE SELECT t AS t;
CALL lance_compct('small');
--> small
--on reader
FROM lance_validate('small');

--= tables of attached folders are kept up
--each name: ns.small | ns.main.small

ATTACH '{folder}' AS ns (TYPE LANCE);
CREATE INDEX i ON {name} (id); ALTER TABLE {name} SET AUTO_CLEANUP (interval = 1000);
OPTIMIZE {name};
--~ "fragments_removed": 4
CALL lance_cleanup('{name}');
--> cleanup | … | …
SELECT index_name FROM lance_indexes('{name}');
--> i
SHOW MAINTENANCE ON {name};
--~ 1000

--= tables that are attached to be read are not kept up

ATTACH '{folder}' AS ns (TYPE LANCE, READ_ONLY);
CREATE INDEX i ON ns.small (id);
--! UnsupportedError: … database ns is attached READ_ONLY
REINDEX ns.small;
--! UnsupportedError: … database ns is attached READ_ONLY
OPTIMIZE ns.small;
--! UnsupportedError: … database ns is attached READ_ONLY
VACUUM ns.small WITH (older_than_seconds = 0);
--! UnsupportedError: … database ns is attached READ_ONLY
CHECKPOINT ns.small;
--! UnsupportedError: … database ns is attached READ_ONLY
ALTER TABLE ns.small SET AUTO_CLEANUP (interval = 2);
--! UnsupportedError: … database ns is attached READ_ONLY
CALL lance_compact(ns.small);
--! UnsupportedError: … database ns is attached READ_ONLY
SELECT Count FROM lance_set_config('ns.small', 'a', 'b');
--! UnsupportedError: … database ns is attached READ_ONLY
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [1, 2, 3, 4]

--= upkeep is explained, and refused in transactions and on connections for reading
--each sql: OPTIMIZE small | VACUUM small WITH (older_than_seconds = 0) | CHECKPOINT small | CALL lance_compact(small)
--each sql: SELECT * FROM lance_compact_files('small') | ALTER TABLE small SET AUTO_CLEANUP (interval = 2)
--each sql: ALTER TABLE small UNSET AUTO_CLEANUP

EXPLAIN {sql};
--~ Nothing was
EXPLAIN {sql};
--> lance_change | …
BEGIN;
{sql};
--! UnsupportedError: … in a transaction; COMMIT or ROLLBACK first
ROLLBACK;
--on reader
{sql};
--! UnsupportedError: … read-only
--on reader
SHOW MAINTENANCE ON small;
--> enabled | false
SELECT list(version ORDER BY version) FROM lance_versions('small');
--> [1, 2, 3, 4]

--= OPTIMIZE … ORDER BY sorts all rows, and refuses what is no column

CREATE TABLE lance.sorted AS SELECT (i * 7) % 10 AS Key, i AS n, {'a': -i} AS st FROM range(10) r(i);
--> 10
INSERT INTO sorted VALUES (NULL, 10, NULL);
--> 1
OPTIMIZE sorted ORDER BY key DESC NULLS FIRST, n WITH (target_rows_per_fragment = 5);
--> compact | … | …
SELECT list(key ORDER BY rowid) FROM sorted;
--> [None, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
OPTIMIZE TABLE sorted ORDER BY st.a;
--> compact | … | …
SELECT list(n ORDER BY rowid) FROM sorted;
--> [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10]
OPTIMIZE sorted ORDER BY key + 1;
--! not a column to sort by: expected column [ASC | DESC] [NULLS FIRST | NULLS LAST], found key + 1
OPTIMIZE sorted ORDER BY;
--! not a column to sort by
OPTIMIZE sorted ORDER BY nope;
--! column 'nope' is not in the schema
OPTIMIZE sorted ORDER BY key WITH (defer_index_remap = true);
--! order_by with defer_index_remap
