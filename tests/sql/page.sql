-- Statements for the sections of docs/reference/sql: `test_page.py` runs each case on new tables.

--= FROM table
SELECT id, x FROM t;
--> 0 | 0
--> 1 | 11
--> 2 | 20
--> 3 | 30
SELECT sum(x) FROM 'dir/x.lance';
--> 60

--= lance_scan
SELECT count(*) FROM lance_scan('dir/t.lance', version := 3);
--> 5
SELECT count(*) FROM lance_scan('dir/t.lance', tag := 'v1');
--> 3
SELECT count(*) FROM lance_scan('dir/t.lance', asof := TIMESTAMP '2999-01-01');
--> 4
SELECT count(*) FROM lance_scan('dir/t.lance', branch := 'dev');
--> 4

--= AT
SELECT count(*) FROM t AT (VERSION => 3);
--> 5
SELECT count(*) FROM t AT (VERSION => 'v1') JOIN t AS newer USING (id);
--> 3
SELECT count(*) FROM t AT (VERSION => 'dev');
--> 4
SELECT count(*) FROM t AT (VERSION => 'dev:4');
--> 4
PREPARE older AS SELECT count(*) FROM t AT (VERSION => ?);
EXECUTE older(2);
--> 5
SELECT count(*) FROM t AT (TIMESTAMP => '2999-01-01');
--> 4
CREATE VIEW first AS FROM t AT (VERSION => 1);
SELECT count(*) FROM first;
--> 3
INSERT INTO t SELECT * FROM t AT (VERSION => 3) WHERE id = 4;
--> 1

--= rowid, _rowid, _rowaddr
SELECT rowid, _rowid, _rowaddr, id FROM t WHERE _rowid IN (3, 7);
--> 3 | 3 | 4294967296 | 3
SELECT count(*) FROM t JOIN (SELECT _rowid AS r FROM t) s ON t.rowid = s.r;
--> 4
CREATE VIEW identified AS SELECT _rowid AS r, id FROM t;
SELECT id FROM identified WHERE r = 2;
--> 2
UPDATE t SET x = rowid WHERE _rowid = 3 RETURNING _rowid, x;
--> 3 | 3
DELETE FROM t WHERE rowid = 3 RETURNING _rowid;
--> 3
SELECT DISTINCT _rowaddr >> 32 FROM lance_scan('dir/x.lance', with_row_id := true, with_row_address := true);
--> 0

--= count, min, max · counts from metadata
SELECT count(*) FROM t;
--> 4
SELECT count(x), count(city) FROM t;
--> 4 | 3

--= count, min, max · ends of a B-tree
CREATE INDEX i ON t USING BTREE (x);
SELECT min(x), max(x), count(*) FROM t;
--> 0 | 30 | 4

--= LIMIT
SELECT count(*) FROM (FROM t LIMIT 2);
--> 2

--= lance_vector_search
SELECT id, _distance FROM lance_vector_search('dir/x.lance', 'vec', [2, 0]::FLOAT[], k := 1);
--> 2 | 0.0
SELECT id FROM lance_vector_search('t', 'vec', [2, 0]::FLOAT[], k := 1, filter := 'id < 2');
--> 1
SELECT query_index, id FROM lance_vector_search('t', 'vec', [[2, 0], [3, 0]]::FLOAT[][], k := 1);
--> 0 | 2
--> 1 | 3
SELECT id FROM lance_vector_search('t', 'vec', [9, 0]::FLOAT[], k := 1, version := 3);
--> 4
SELECT id FROM lance_vector_search('t', 'vec', [9, 0]::FLOAT[], k := 1, tag := 'v1');
--> 2
SELECT id FROM lance_vector_search('t', 'vec', [9, 0]::FLOAT[], k := 1, asof := TIMESTAMP '2999-01-01');
--> 3
SELECT id FROM lance_vector_search('t', 'vec', [9, 0]::FLOAT[], k := 1, branch := 'dev');
--> 3
PREPARE nearest AS SELECT id FROM lance_vector_search('t', 'vec', ?, k := 1);
EXECUTE nearest([1, 0]::FLOAT[]);
--> 1

--= lance_fts
SELECT id FROM lance_fts('dir/x.lance', 'body', 'duck lake', k := 10) ORDER BY _score DESC;
--> 0
--> 2
--> 1
SELECT id FROM lance_fts('t', 'body', '"duck lake"', k := 10);
--> 0
SELECT id FROM lance_fts('t', 'body', '{"match": {"terms": "duck lake", "operator": "AND"}}', k := 10);
--> 0
SELECT id FROM lance_fts('t', 'body', 'lake', k := 10, filter := 'id > 0');
--> 1

--= match
SELECT id FROM t WHERE match(body, 'duck lake') ORDER BY score(t) DESC LIMIT 10;
--> 0
--> 2
--> 1
SELECT id FROM t WHERE match(body, 'duck lake', operator := 'AND');
--> 0
SELECT id FROM t WHERE match(body, 'dukc', fuzziness := 2, prefix_length := 1, max_expansions := 10, boost := 2.0);
--> 0
--> 2
SELECT id FROM t WHERE match_phrase(body, 'goose lake', 2) OR (NOT match(body, 'lake') AND id > 2);
--> 1
--> 3
SELECT q.k, s.id FROM q, LATERAL (SELECT id FROM t WHERE match(t.body, 'duck') AND t.id <= q.k) s WHERE q.k = 0;
--> 0 | 0
CREATE VIEW ducks AS SELECT id FROM t WHERE match(body, 'duck');
SELECT count(*) FROM ducks;
--> 2
PREPARE words AS SELECT count(*) FROM t JOIN q ON q.k = t.id WHERE match(t.body, ?);
EXECUTE words('duck');
--> 1
SELECT match(city, 'rome') FROM t WHERE id = 2;
--> NULL
UPDATE t SET x = -1 WHERE match(body, 'goose');
--> 1
DELETE FROM t WHERE match(body, 'rain');
--> 1

--= match · through an index
CREATE INDEX words ON t USING INVERTED (body);
SELECT id, match(body, 'goose') AS has FROM t WHERE id < 2;
--> 0 | false
--> 1 | true
MERGE INTO t USING q ON t.id = q.k AND match(t.body, 'duck') WHEN MATCHED AND NOT match(t.body, 'rain') THEN UPDATE SET x = 5;
--> 1
SELECT id, COLUMNS('^x$') FROM t WHERE match(body, 'lake duck', operator := 'AND');
--> 0 | 5
SELECT * FROM (PIVOT (SELECT match(body, 'duck') AS has, id FROM t) ON has USING count(id));
--> 2 | 2
SELECT to_json(t) ->> 'city' FROM t WHERE match(body, 'goose');
--> Oslo
WITH found AS (SELECT id, body AS words FROM t LIMIT 9) SELECT id FROM found WHERE match(words, 'goose');
--> 1
SELECT id FROM (SELECT DISTINCT id, body FROM t) WHERE match(body, 'goose');
--> 1
SELECT body, match(body, 'goose') FROM (FROM t WHERE id < 2) GROUP BY body ORDER BY min(id);
--> duck lake | false
--> a goose on the lake | true
EXPLAIN SELECT id FROM (FROM t) WHERE match(body, 'goose');
--> lance_plan | …
--> physical_plan | …

--= highlight
SELECT highlight(body, 'duck lake', '<b>', '</b>'), snippet(body, 'duck lake', 20) FROM t WHERE id = 0;
--> <b>duck</b> <b>lake</b> | <b>duck</b> <b>lake</b>
SELECT highlight(body, '"duck lake" goose', pre := '[', post := ']') FROM t WHERE id < 2;
--> [duck] [lake]
--> a [goose] on the lake
SELECT snippet(body, 'goose', words := 2, gap := '~', pre := '[', post := ']') FROM t WHERE id = 1;
--> ~[goose] on~
SELECT highlight([body, 'rain'], 'duck') FROM t WHERE id = 2;
--> [<b>duck</b>, rain]

--= lance_hybrid_search
SELECT id, _distance, _score > 0, _hybrid_score > 0 FROM lance_hybrid_search('dir/x.lance', 'vec', [0, 0]::FLOAT[], 'body', 'duck lake', k := 1, alpha := 0.5, oversample_factor := 4);
--> 0 | 0.0 | true | true
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, method := 'rrf');
--> 1

--= ORDER BY distance
PREPARE near AS SELECT id FROM t WHERE id > 0 ORDER BY array_distance(vec, ?::FLOAT[2]) LIMIT 1;
EXECUTE near([0, 0]);
--> 1
SELECT id FROM t ORDER BY vec <-> [3, 0]::FLOAT[2] LIMIT 1;
--> 3
SELECT id FROM t WHERE id > 0 ORDER BY vec <=> [0, 1]::FLOAT[2], id LIMIT 1;
--> 1
SELECT id, list_distance(vec::FLOAT[], [2, 0]::FLOAT[]) AS d FROM t ORDER BY d LIMIT 1;
--> 2 | 0.0
SELECT id FROM t ORDER BY array_negative_inner_product(vec, [1, 0]::FLOAT[2]) LIMIT 1;
--> 3
SELECT id FROM t ORDER BY array_distance(vec, (SELECT vec FROM q WHERE k = 3)) LIMIT 1;
--> 3
SET lance_nearest = 'auto';
SET lance_recall = 0.9;
SET lance_nprobes = 2;
SET lance_ef = 20;
SET lance_refine_factor = 2;
SET lance_nearest = 'exact';
SET lance_nearest = 'off';
SELECT id FROM t ORDER BY array_distance(vec, [2, 0]::FLOAT[2]) LIMIT 1;
--> 2

--= LATERAL
SELECT q.k, s.id FROM q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.vec) LIMIT 1) s;
--> 3 | 3
--> 0 | 0

--= NEAREST BY
SELECT q.k, t.id FROM q JOIN t NEAREST 1 BY DISTANCE array_distance(q.vec, t.vec);
--> 3 | 3
--> 0 | 0
SELECT q.k, t.id FROM q LEFT JOIN t APPROX NEAREST 1 BY SIMILARITY array_inner_product(q.vec, t.vec) WHERE q.k = 3;
--> 3 | 3
SELECT q.k, t.id FROM q JOIN (SELECT * FROM t WHERE id > 0) t EXACT NEAREST 1 BY DISTANCE array_distance(q.vec, t.vec);
--> 3 | 3
--> 0 | 1
SET lance_nearest = 'exact';

--= JOIN, IN, EXISTS
CREATE INDEX ids ON t USING BTREE (id);
SELECT id FROM t JOIN q ON q.k = t.id WHERE q.k > 0;
--> 3
SELECT id FROM t WHERE id IN (SELECT k FROM q);
--> 0
--> 3
SELECT id FROM t WHERE EXISTS (FROM q WHERE q.k = t.id AND k > 0);
--> 3

--= EXPLAIN
EXPLAIN SELECT id FROM t WHERE id = 1;
--> lance_plan | …
--> physical_plan | …
EXPLAIN ANALYZE SELECT id FROM t WHERE id = 1;
--> analyzed_plan | …
--> lance_plan | …

--= WHERE
SELECT id FROM t WHERE x > 10 AND city = 'Oslo';
--> 1

--= lance_versions
SELECT version, operation, tags FROM lance_versions('t') ORDER BY version;
--> 1 | Overwrite | ['v1']
--> 2 | Append | []
--> 3 | Update | []
--> 4 | Delete | []
SELECT count(*) FROM lance_versions('t', branch := 'dev') WHERE timestamp < now() AND author IS NULL AND message IS NULL;
--> 1
SELECT count(*) FROM lance.versions('t') WHERE writer IS NOT NULL AND properties IS NOT NULL;
--> 4

--= lance_table_changes
SELECT snapshot_id, change_type, id, x FROM lance_table_changes('t', 2, 4) ORDER BY snapshot_id, id, change_type DESC;
--> 2 | insert | 3 | 30
--> 2 | insert | 4 | 40
--> 3 | update_preimage | 1 | 10
--> 3 | update_postimage | 1 | 11
--> 4 | delete | 4 | 40
SELECT count(*), max(rowid) FROM lance_table_changes('t', 'v1');
--> 8 | 4
SELECT count(*) FROM lance_table_changes('t', NULL, TIMESTAMP '2999-01-01');
--> 8

--= lance_info
SELECT version FROM lance_info('t');
--> 4
SELECT version FROM lance_info('t', version := 2);
--> 2
SELECT version FROM lance_info('t', tag := 'v1');
--> 1
SELECT version FROM lance_info('t', asof := TIMESTAMP '2999-01-01');
--> 4
SELECT count(*) FROM lance_fragments('t', branch := 'dev');
--> 3
SELECT count(*) > 2 FROM lance_files('t');
--> true
SELECT count(*) FROM lance_indexes('t');
--> 0
FROM lance_config('t');
FROM lance_table_metadata('t');
FROM lance_schema_metadata('t');
FROM lance_column_metadata('t', 'x');

--= lance_tags
SELECT tag, version FROM lance_tags('t');
--> v1 | 1
SELECT branch FROM lance_branches('t');
--> dev
--> main

--= lance_set_commit_message
BEGIN;
CALL lance_set_commit_message('ann', 'one row', extra_info => 'x');
INSERT INTO t (id) VALUES (9);
--> 1
COMMIT;
SELECT author, message FROM lance_versions('t') WHERE version = 5;
--> ann | one row

--= lance_restore
CALL lance_restore('t', 3);
--> 5
SELECT count(*) FROM t;
--> 5
CALL lance_restore('t', 'v1');
--> 6

--= lance_create_tag
CALL lance_create_tag('t', 'v3', version => 3);
CALL lance_create_tag('t', 'newest');
CALL lance_update_tag('t', 'v3', version => 'dev:4');
CALL lance_delete_tag('t', 'newest');
CALL lance_create_branch('t', 'old', version => 'v1');
SELECT count(*) FROM t AT (VERSION => 'old');
--> 3
CALL lance_delete_branch('t', 'old');
SELECT tag, branch, version FROM lance_tags('t') ORDER BY tag;
--> v1 | main | 1
--> v3 | dev | 4
SELECT branch FROM lance_branches('t');
--> dev
--> main

--= INSERT INTO
INSERT INTO t VALUES (5, 'Bonn', 50, 'rain', [5, 0]), (6, DEFAULT, 60, DEFAULT, NULL) RETURNING id, city;
--> 5 | Bonn
--> 6 | NULL
INSERT INTO t (x, id) SELECT x, id + 10 FROM t WHERE id = 5 RETURNING id, x, city;
--> 15 | 50 | NULL
INSERT INTO t BY NAME SELECT 'Bari' AS city, 7 AS id;
--> 1
SELECT id, city, x FROM t WHERE id = 7;
--> 7 | Bari | NULL

--= UPDATE · DELETE and TRUNCATE
UPDATE t SET (x, city) = (x + 1, 'Bonn') FROM q WHERE q.k = t.id AND q.k = 3 RETURNING t.id, t.x, t.city;
--> 3 | 31 | Bonn
UPDATE t SET city = DEFAULT WHERE id = 3;
--> 1
WITH low AS (SELECT 1 AS k) UPDATE t SET x = 0 FROM low WHERE low.k = t.id;
--> 1
SELECT x, city FROM t WHERE id IN (1, 3) ORDER BY id;
--> 0 | Oslo
--> 31 | NULL
WITH low AS (SELECT 1 AS k) DELETE FROM t USING low WHERE low.k = t.id RETURNING id;
--> 1
TRUNCATE t;
--> 3
SELECT count(*) FROM t;
--> 0

--= MERGE INTO
MERGE INTO t USING (VALUES (3, 'new'), (8, 'more')) AS s(id, city) ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = s.city WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, s.city) WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE RETURNING merge_action, t.id;
--> UPDATE | 3
--> INSERT | 8
--> DELETE | 0
MERGE INTO t USING (VALUES (3), (3)) AS s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 0;
--! several rows

--= INSERT ON CONFLICT
INSERT INTO t (id, x) VALUES (3, 1), (8, 2) ON CONFLICT (id) DO UPDATE SET x = excluded.x;
--> 2
SELECT id, x FROM t WHERE id IN (3, 8) ORDER BY id;
--> 3 | 1
--> 8 | 2
CREATE TABLE lance.keyed (id INTEGER PRIMARY KEY, s VARCHAR);
INSERT INTO lance.keyed VALUES (1, 'a');
--> 1
INSERT INTO lance.keyed VALUES (2, 'twice'), (2, 'again');
--! DuplicateKeyError: table keyed: Duplicate key "id: 2" violates primary key constraint
SET lance_check_primary_key = false;
INSERT INTO lance.keyed VALUES (2, 'twice'), (2, 'again');
--> 2
RESET lance_check_primary_key;
INSERT INTO keyed VALUES (2, 'skipped') ON CONFLICT DO NOTHING;
--> 0
INSERT OR REPLACE INTO keyed VALUES (2, 'c');
--! 2 rows with id = 2
DELETE FROM keyed WHERE id = 2;
--> 2
INSERT OR REPLACE INTO keyed VALUES (1, 'b');
--> 1
INSERT OR IGNORE INTO keyed VALUES (1, 'c');
--> 0
FROM keyed;
--> 1 | b

--= CREATE TABLE
CREATE TABLE lance.a (k, v) AS SELECT 1, 'one' WITH NO DATA;
--> 0
CREATE OR REPLACE TABLE lance.a (k, v) AS SELECT 1, 'one' WITH DATA;
--> 1
CREATE TABLE IF NOT EXISTS lance.a (z INTEGER);
FROM a;
--> 1 | one
CREATE TABLE 'dir/b.lance' (id INTEGER NOT NULL PRIMARY KEY, s VARCHAR) WITH (data_storage_version = '2.1', enable_stable_row_ids = true, max_rows_per_file = 1000);
CREATE TABLE lance.v WITH (vector_columns = 'v') AS SELECT [1, 2] v, [3] w;
--> 1
CREATE OR REPLACE TABLE lance.v WITH (vector_columns = ['v', 'w']) AS SELECT [1, 2] v, [3] w;
--> 1
CREATE OR REPLACE TABLE lance.v WITH (vector_columns = {'v': 2}) AS SELECT [1, 2] v, [3] w;
--> 1
SELECT typeof(v), typeof(w) FROM v;
--> FLOAT[2] | INTEGER[]
DROP TABLE v;
CREATE TABLE lance.c (LIKE b);
DESCRIBE c;
--> id | INTEGER | NO | PRI | NULL | NULL
--> s | VARCHAR | YES | NULL | NULL | NULL
CREATE TABLE memory.own (x INTEGER);
USE lance;
CREATE TABLE d (x INTEGER);
SHOW TABLES;
--> a
--> b
--> c
--> d
--> q
--> t
--> x

--= ALTER TABLE ADD COLUMN · and the other forms
ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 7;
ALTER TABLE t RENAME COLUMN y TO z;
ALTER TABLE t ALTER z TYPE BIGINT;
ALTER TABLE t ALTER z SET NOT NULL;
ALTER TABLE t ALTER z DROP NOT NULL;
SELECT DISTINCT z, typeof(z) FROM t;
--> 7 | BIGINT
ALTER TABLE t DROP z;
ALTER TABLE t ADD COLUMN v FLOAT[] DEFAULT [1, 2];
ALTER TABLE t ALTER v TYPE FLOAT[2];
SELECT DISTINCT v, typeof(v) FROM t;
--> (1.0, 2.0) | FLOAT[2]
ALTER TABLE t DROP v;
ALTER TABLE t RENAME TO u;
--! branch
ALTER TABLE x RENAME TO u;
SELECT count(*) FROM u;
--> 4

--= DROP TABLE
DROP TABLE IF EXISTS nowhere;
DROP TABLE t, x;
SHOW TABLES;
--> q

--= COMMENT ON
COMMENT ON TABLE t IS 'of trips';
COMMENT ON COLUMN t.x IS 'a number';
SELECT comment FROM duckdb_tables() WHERE table_name = 't';
--> of trips
SELECT comment FROM duckdb_columns() WHERE table_name = 't' AND column_name = 'x';
--> a number
SELECT * FROM lance_table_metadata('t');
--> comment | of trips

--= COPY TO
COPY t TO 'dir/y.lance';
--> 4
COPY (SELECT id FROM t WHERE id < 2) TO 'dir/y.lance' (FORMAT lance, MODE 'overwrite', data_storage_version '2.1');
--> 2
COPY (SELECT 9::BIGINT AS id) TO 'dir/y.lance' (MODE 'append');
--> 1
COPY (SELECT 9::BIGINT AS id) TO 'dir/y.lance' (MODE 'create');
--! exists
COPY (SELECT id FROM t WHERE false) TO 'dir/z.lance' (FORMAT lance, WRITE_EMPTY_FILE false);
--> 0
PREPARE put AS COPY (SELECT 1 AS id) TO ? (FORMAT lance);
EXECUTE put('dir/p.lance');
--> 1
COPY t TO 'dir/z.lance' (FORMAT csv);
--! z.lance
EXPORT DATABASE 'dir/z.lance';
--! z.lance
ATTACH 'dir/z.lance' AS other;
--! z.lance

--= COPY FROM
COPY (SELECT 5 AS id, 50 AS x) TO 'rows.csv';
--> 1
COPY t (id, x) FROM 'rows.csv' (HEADER);
--> 1
COPY (FROM t WHERE id = 5) TO 'rows.parquet';
--> 1
COPY t FROM 'rows.parquet';
--> 1
COPY (SELECT 5 AS id) TO 'rows.json';
--> 1
COPY t (id) FROM 'rows.json';
--> 1
COPY t FROM 'dir/x.lance';
--> 4
SELECT count(*) FROM t;
--> 11

--= ATTACH
ATTACH 'dir' AS ns (TYPE lance);
ATTACH IF NOT EXISTS 'dir' AS ns (TYPE lance);
SELECT count(*) FROM ns.t JOIN ns.main.t AS other USING (id);
--> 4
SHOW TABLES FROM ns;
--> q
--> t
--> x
SELECT column_name FROM (DESCRIBE ns.t) LIMIT 1;
--> id
SELECT table_name FROM information_schema.tables WHERE table_catalog = 'ns' ORDER BY table_name;
--> q
--> t
--> x
USE ns;
SELECT count(*) FROM t;
--> 4
USE memory;
ATTACH OR REPLACE 'dir' AS ns (TYPE lance, READ_ONLY);
DELETE FROM ns.t;
--! READ_ONLY
DETACH ns;
ATTACH 'dir' AS first (TYPE lance, VERSION 1);
SELECT count(*) FROM first.t;
--> 3
ATTACH 'dir' AS tagged (TYPE lance, VERSION 'v1');
ATTACH 'dir' AS timed (TYPE lance, TIMESTAMP '2999-01-01');
ATTACH 'dir' AS branched (TYPE lance, BRANCH 'dev');
SELECT count(*) FROM branched.t JOIN timed.t AS b USING (id) JOIN tagged.t AS c USING (id);
--> 3
ATTACH 'dir' AS part (TYPE lance, NAMESPACE 'a$b');
--! a$b
ATTACH '$' AS far (TYPE lance, ENDPOINT 'http://127.0.0.1:9', BEARER_TOKEN 'x');
--! the service does not respond

--= CREATE SECRET
CREATE SECRET s (TYPE lance, SCOPE 's3://bucket/a', KEY_ID 'k', SECRET 'v', REGION 'eu-1', ENDPOINT 'http://127.0.0.1:9', allow_http 'true');
--> true
SELECT count(*) FROM duckdb_secrets();
--> 0
ATTACH 'dir' AS ns (TYPE lance);
DROP SECRET s;

--= CREATE INDEX
CREATE INDEX i ON t (id);
CREATE INDEX IF NOT EXISTS i ON t USING BTREE (id);
CREATE OR REPLACE INDEX i ON t (id) USING BITMAP;
CREATE INDEX zones ON t USING ZONEMAP (x) WITH (rows_per_zone = 1000);
CREATE INDEX blooms ON t USING BLOOMFILTER (x);
CREATE INDEX grams ON t USING NGRAM (body);
CREATE INDEX words ON t USING INVERTED (body) WITH (language = 'English');
CREATE OR REPLACE INDEX words ON t USING FTS (body);
CREATE TABLE lance.l AS SELECT ['a', 'b'] AS labels;
--> 1
CREATE INDEX lists ON l USING LABEL_LIST (labels);
CREATE TABLE lance.v AS SELECT [i, i % 7, i % 5, i % 3, i, i, i, i]::FLOAT[8] AS vec FROM range(300) r(i);
--> 300
CREATE INDEX a ON v USING IVF_FLAT (vec) WITH (num_partitions = 2, metric = 'cosine');
CREATE INDEX b ON v USING IVF_SQ (vec) WITH (num_partitions = 2);
CREATE INDEX c ON v USING IVF_PQ (vec) WITH (num_partitions = 2, num_sub_vectors = 2);
CREATE INDEX d ON v USING IVF_RQ (vec) WITH (num_partitions = 2);
CREATE INDEX e ON v USING IVF_HNSW_FLAT (vec) WITH (num_partitions = 2);
CREATE INDEX f ON v USING IVF_HNSW_SQ (vec) WITH (num_partitions = 2);
CREATE INDEX g ON v USING IVF_HNSW_PQ (vec) WITH (num_partitions = 2, num_sub_vectors = 2);
SELECT count(*) FROM lance_indexes('v');
--> 7

--= DROP INDEX
CREATE INDEX i ON t (id);
SHOW INDEXES ON t;
--> i | BTree | id | 4 | NULL
DROP INDEX i ON t;
DROP INDEX IF EXISTS i ON t;
SHOW INDEXES ON t;

--= ALTER INDEX OPTIMIZE
CREATE INDEX i ON t (id);
INSERT INTO t (id) VALUES (9);
--> 1
ALTER INDEX i ON t OPTIMIZE;
--> optimize_index | dir/t.lance | …
ALTER INDEX i ON t OPTIMIZE WITH (mode = 'append');
--> optimize_index | dir/t.lance | …
ALTER INDEX i ON t OPTIMIZE WITH (mode = 'merge');
--> optimize_index | dir/t.lance | …
ALTER INDEX i ON t OPTIMIZE WITH (mode = 'retrain');
--> optimize_index | dir/t.lance | …

--= REINDEX
CREATE INDEX i ON t (id);
REINDEX i ON t;
REINDEX i ON t RETRAIN;
REINDEX t;
REINDEX t RETRAIN;

--= OPTIMIZE
SELECT count(*) FROM lance_fragments('t');
--> 3
OPTIMIZE t;
--> compact | dir/t.lance | …
SELECT count(*) FROM lance_fragments('t');
--> 1

--= VACUUM
VACUUM t;
--> cleanup | dir/t.lance | …
VACUUM LANCE t WITH (older_than = INTERVAL '7 days', dry_run = true);
--> cleanup | dir/t.lance | …
SELECT count(*) FROM lance_versions('t');
--> 4
VACUUM t WITH (retain = 3);
--! tagged version
VACUUM t WITH (retain = 3, error_if_tagged_old_versions = false);
--> cleanup | dir/t.lance | …

--= CHECKPOINT
CHECKPOINT t;
--> cleanup | dir/t.lance | …
--> compact | dir/t.lance | …
--> optimize_index | dir/t.lance | …
SELECT count(*) FROM lance_fragments('t');
--> 1

--= AUTO_CLEANUP
ALTER TABLE t SET AUTO_CLEANUP (interval = 20, older_than = '14 days');
SHOW MAINTENANCE ON t;
--> enabled | true
--> interval | 20
--> older_than | 14 days
ALTER TABLE t UNSET AUTO_CLEANUP;

--= lance_compact
CALL lance_compact(t, target_rows_per_fragment => 100);
--> compact | dir/t.lance | …
SELECT * FROM lance_cleanup(t, older_than := '1 day');
--> cleanup | dir/t.lance | …
CALL lance_optimize_indexes(t);
--> optimize_index | dir/t.lance | …
CALL lance_set_config(t, 'a', 'b');
--> 1
FROM lance_config('t');
--> a | b
CALL lance_unset_config(t, 'a');
--> 1
CALL lance_set_table_metadata(t, 'a', 'b');
--> 1
CALL lance_unset_table_metadata(t, 'a');
--> 1
CALL lance_set_schema_metadata(t, 'a', 'b');
--> 1
CALL lance_unset_schema_metadata(t, 'a');
--> 1
CALL lance_set_column_metadata(t, 'x', 'a', 'b');
--> 1
CALL lance_unset_column_metadata(t, 'x', 'a');
--> 1

--= FROM table · three names of one table
SELECT count(*) FROM t JOIN lance.t AS b USING (id) JOIN 'dir/t.lance' AS c USING (id);
--> 4
BEGIN;
DELETE FROM lance.t WHERE id = 0;
--> 1
SELECT count(*) FROM t JOIN 'dir/t.lance' AS c USING (id);
--> 3
COMMIT;

--= EXPLAIN · of a change
EXPLAIN DELETE FROM t WHERE id = 1;
--> lance_change | This is the plan that finds the rows to change. Nothing was written.
--> lance_plan | …
--> physical_plan | …
SELECT count(*) FROM t;
--> 4

--= PREPARE, EXECUTE, DEALLOCATE
PREPARE change AS UPDATE t SET x = ? WHERE id = ?;
EXECUTE change(1, 0);
--> 1
PREPARE named AS DELETE FROM t WHERE id = $id AND x = $value;
EXECUTE named(id := 0, value := 1);
--> 1
PREPARE number AS SELECT count(*) FROM t WHERE id > $1;
EXECUTE number(0);
--> 3
DELETE FROM t WHERE id = 1;
--> 1
EXECUTE number(0);
--> 2
DEALLOCATE number;

--= BEGIN, COMMIT, ROLLBACK
BEGIN;
UPDATE t SET x = 0;
--> 4
INSERT INTO t (id, x) VALUES (9, 0);
--> 1
SELECT count(*) FROM t WHERE x = 0;
--> 5
ROLLBACK;
SELECT count(*) FROM t WHERE x = 0;
--> 1
BEGIN;
DELETE FROM t WHERE id = 1;
--> 1
DELETE FROM x WHERE false;
--> 0
ALTER TABLE x RENAME TO y;
SELECT count(*) FROM y;
--> 4
ROLLBACK;
SELECT count(*) FROM x;
--> 4
BEGIN;
UPDATE t SET x = 0;
--> 4
DELETE FROM t WHERE id > 0;
--> 3
COMMIT;
SELECT max(version), (SELECT count(*) FROM t) FROM lance_versions('t');
--> 5 | 1

--= lance_scan · row ids and addresses
SELECT _rowid, _rowaddr FROM lance_scan('dir/x.lance', with_row_id := true, with_row_address := true) LIMIT 1;
--> 0 | 0

--= lance_vector_search · every parameter
CREATE TABLE lance.v AS SELECT i AS id, [i, i % 7, i % 5, i % 3]::FLOAT[4] AS vec FROM range(300) r(i);
--> 300
CREATE INDEX graph ON v USING IVF_HNSW_FLAT (vec) WITH (num_partitions = 2);
SELECT id FROM lance_vector_search('v', 'vec', [9, 2, 4, 0]::FLOAT[], k := 1, nprobes := 2, ef := 20, refine_factor := 2);
--> 9
SELECT id FROM lance_vector_search('v', 'vec', [9, 2, 4, 0]::FLOAT[], k := 1, nprobs := 2, explain_verbose := true);
--> 9
SELECT id FROM lance_vector_search('v', 'vec', [9, 2, 4, 0]::FLOAT[], k := 1, recall := 0.99, metric := 'l2');
--> 9
SELECT id FROM lance_vector_search('v', 'vec', [9, 2, 4, 0]::FLOAT[], k := 1, use_index := false);
--> 9
SELECT id FROM lance_vector_search('v', 'vec', [9, 2, 4, 0]::FLOAT[], k := 1, filter := 'id > 9', prefilter := false);

--= ORDER BY distance · every function
SELECT id FROM t ORDER BY array_cosine_distance(vec, [1, 0]::FLOAT[2]), id LIMIT 1;
--> 1
SELECT id FROM t ORDER BY list_cosine_distance(vec::FLOAT[], [1, 0]::FLOAT[]), id LIMIT 1;
--> 1
SELECT id FROM t WHERE id > 0 ORDER BY array_cosine_similarity(vec, [1, 0]::FLOAT[2]) DESC, id LIMIT 1;
--> 1
SELECT id FROM t WHERE id > 0 ORDER BY list_cosine_similarity(vec::FLOAT[], [1, 0]::FLOAT[]) DESC, id LIMIT 1;
--> 1
SELECT id FROM t ORDER BY array_inner_product(vec, [1, 0]::FLOAT[2]) DESC LIMIT 1;
--> 3
SELECT id FROM t ORDER BY array_dot_product(vec, [1, 0]::FLOAT[2]) DESC LIMIT 1;
--> 3
SELECT id FROM t ORDER BY list_inner_product(vec::FLOAT[], [1, 0]::FLOAT[]) DESC LIMIT 1;
--> 3
SELECT id FROM t ORDER BY list_negative_inner_product(vec::FLOAT[], [1, 0]::FLOAT[]) LIMIT 1;
--> 3

--= lance_fts · every parameter
SELECT id FROM lance_fts('t', 'body', 'goose', version := 1);
--> 1
SELECT id FROM lance_fts('t', 'body', 'goose', tag := 'v1');
--> 1
SELECT id FROM lance_fts('t', 'body', 'goose', asof := TIMESTAMP '2999-01-01');
--> 1
SELECT id FROM lance_fts('t', 'body', 'goose', branch := 'dev');
--> 1
SELECT id FROM lance_fts('t', 'body', 'duck lake', k := 1, filter := 'id > 0', prefilter := false);
SELECT id FROM lance_fts('t', 'body', '{"prefix": {"terms": "goo"}}');
--> 1
SELECT id FROM lance_fts('t', 'body', '{"phrase": {"terms": "goose lake", "slop": 2}}');
--> 1
SELECT id FROM lance_fts('t', 'body', '{"boost": {"positive": {"match": {"terms": "duck"}}, "negative": {"match": {"terms": "lake"}}, "negative_boost": 0.5}}') ORDER BY _score DESC;
--> 2
--> 0

--= lance_hybrid_search · every parameter
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, version := 3, filter := 'id < 9', prefilter := true);
--> 1
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, tag := 'v1', metric := 'l2', use_index := true);
--> 1
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, asof := TIMESTAMP '2999-01-01', recall := 0.9);
--> 1
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, branch := 'dev', nprobes := 1, ef := 9, refine_factor := 1);
--> 1
SELECT id FROM lance_hybrid_search('t', 'vec', [1, 0]::FLOAT[], 'body', 'goose', k := 1, nprobs := 1, explain_verbose := false);
--> 1

--= INSERT INTO · by position
INSERT INTO q BY POSITION SELECT 9 AS vec, [1, 0]::FLOAT[2] AS k RETURNING k;
--> 9
INSERT INTO t DEFAULT VALUES RETURNING id;
--> NULL

--= CREATE TABLE · every option
CREATE TABLE lance.o (id INTEGER) WITH (enable_v2_manifest_paths = false, max_bytes_per_file = 1000000, max_rows_per_group = 512);
CREATE TABLE lance.old WITH (data_storage_version = '0.1', max_rows_per_group = 2) AS SELECT 1 AS id FROM range(5);
--> 5
CREATE TABLE lance.alike LIKE o;
SELECT count(*) FROM alike;
--> 0

--= INVERTED · every option
CREATE INDEX i ON t USING INVERTED (body) WITH (analyzer = 'text', lance_tokenizer = 'text', block_size = 256, format_version = 3, memory_limit = '256MB', num_workers = 1, document_granularity = 'row', remove_stop_words = false);
SELECT id FROM t WHERE match(body, 'goose');
--> 1
CREATE TABLE lance.texts AS SELECT 1 AS id, ['duck lake', 'goose'] AS body;
--> 1
CREATE INDEX i ON texts USING INVERTED (body) WITH (document_granularity = 'list_element', with_position = true);
SELECT _doc_index FROM lance_fts('texts', 'body', 'goose');
--> [1]
CREATE INDEX j ON t USING INVERTED (body) WITH (base_tokenizer = 'icu');
--! icu
CREATE INDEX j ON t USING INVERTED (body) WITH (split_identifiers = true, split_on_numerics = true, preserve_original = true, index_operators = true);
--! split_identifiers

--= Vector indexes · every option
CREATE TABLE lance.v AS SELECT [i, i % 7, i % 5, i % 3]::FLOAT[4] AS vec FROM range(300) r(i);
--> 300
CREATE INDEX a ON v USING IVF_FLAT (vec) WITH (ivf_centroids = [[50, 3, 2, 1], [200, 3, 2, 1]], index_file_version = 'V3');
CREATE INDEX b ON v USING IVF_PQ (vec) WITH (ivf_centroids = [[50, 3, 2, 1]], num_sub_vectors = 2, num_bits = 4, pq_codebook = [[[c, c] FOR c IN range(16)] FOR s IN range(2)]);
CREATE INDEX c ON v USING IVF_HNSW_FLAT (vec) WITH (num_partitions = 1, max_level = 4, hnsw_m = 8, hnsw_ef_construction = 40);
CREATE INDEX d ON v USING IVF_HNSW_FLAT (vec) WITH (num_partitions = 1, hnsw_max_level = 4, distance_type = 'l2', max_iterations = 10);
CREATE INDEX e ON v USING IVF_FLAT (vec) WITH (num_partitions = 1, metric_type = 'dot');
SELECT count(*) FROM lance_indexes('v');
--> 5

--= lance_indexes · at a time
SELECT count(*) FROM lance_indexes('t', asof := TIMESTAMP '2999-01-01');
--> 0
SELECT count(*) FROM lance_indexes('t', tag := 'v1');
--> 0
SELECT count(*) FROM lance_indexes('t', branch := 'dev');
--> 0

--= OPTIMIZE · every option
OPTIMIZE t WITH (max_rows_per_group = 512, max_bytes_per_file = 1000000, batch_size = 100, max_overlays_per_fragment = 5, excluded_fragment_ids = [0], max_source_rows = 100, max_source_bytes = 1000000);
--> compact | dir/t.lance | …
OPTIMIZE x WITH (defer_index_remap = true, data_storage_version = '2.1');
--> compact | dir/x.lance | …
OPTIMIZE t WITH (remap_indices = false, materialize_deletions = false, compaction_mode = 'reencode', io_buffer_size = 1000000, binary_copy_read_batch_bytes = 1000000, max_source_fragments = 10);
--> compact | dir/t.lance | …

--= VACUUM · every option
VACUUM t WITH (versions = [2], delete_unverified = true, delete_rate_limit = 100);
--> cleanup | dir/t.lance | …
VACUUM t WITH (retain_versions = 100);
--> cleanup | dir/t.lance | …
VACUUM t WITH (retain_n_versions = 100);
--> cleanup | dir/t.lance | …
VACUUM t WITH (older_than_seconds = 86400);
--> cleanup | dir/t.lance | …
SELECT count(*) FROM lance_versions('t');
--> 3
