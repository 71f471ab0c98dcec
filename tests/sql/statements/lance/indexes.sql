-- CREATE, DROP, SHOW, ALTER INDEX and REINDEX of Lance tables.

CREATE TABLE lance.photos WITH (max_rows_per_file = 200) AS
SELECT i AS id, i % 5 AS label, ['t' || i % 3] AS tags, {'x': i // 2} AS at,
  [i % 7, i % 11, i % 13, i, -i, i % 3, 1, i % 17]::FLOAT[8] AS vec
FROM range(600) r(i);
--> 600

--= indexes are made

CREATE INDEX i ON photos (id);
SHOW INDEXES ON photos;
--> i | BTree | id | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (ID) USING btree;
SHOW INDEXES ON photos;
--> i | BTree | id | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos USING BITMAP (label);
SHOW INDEXES ON photos;
--> i | Bitmap | label | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX ON photos (label) USING BITMAP;
SHOW INDEXES ON photos;
--> label_idx | Bitmap | label | 600 | …
DROP INDEX "label_idx" ON photos;
CREATE INDEX i ON photos (tags) USING LABEL_LIST;
SHOW INDEXES ON photos;
--> i | LabelList | tags | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (at.x) USING ZONEMAP WITH (rows_per_zone = 100);
SHOW INDEXES ON photos;
--> i | ZoneMap | at.x | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (id) USING BLOOMFILTER WITH (probability => 0.01);
SHOW INDEXES ON photos;
--> i | BloomFilter | id | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (tags) USING INVERTED WITH (with_position, stem = false, max_token_length = NULL);
SHOW INDEXES ON photos;
--> i | Inverted | tags | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos USING fts (tags) WITH (base_tokenizer = ngram, custom_stop_words = ['a']);
SHOW INDEXES ON photos;
--> i | Inverted | tags | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX IF NOT EXISTS "i ""1""" ON photos (id);
SHOW INDEXES ON photos;
--> i "1" | BTree | id | 600 | …
DROP INDEX "i ""1""" ON photos;
CREATE OR REPLACE INDEX i ON photos (id) WITH (train = false);
SHOW INDEXES ON photos;
--> i | BTree | id | 0 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (num_partitions=1, metric_type='l2');
SHOW INDEXES ON photos;
--> i | IVF_FLAT | vec | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos USING ivf_pq (vec) WITH (num_partitions := 2, num_sub_vectors => 4, metric=cosine);
SHOW INDEXES ON photos;
--> i | IVF_PQ | vec | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos USING ivf_rq (vec) WITH (num_partitions = 2, num_bits = 3);
SHOW INDEXES ON photos;
--> i | IVF_RQ | vec | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (vec) USING IVF_SQ WITH (num_partitions = 1 + 1, distance_type = 'dot');
SHOW INDEXES ON photos;
--> i | IVF_SQ | vec | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (vec) USING IVF_HNSW_SQ WITH (num_partitions = 1, hnsw_m = 8, ef_construction = 40);
SHOW INDEXES ON photos;
--> i | IVF_HNSW_SQ | vec | 600 | …
DROP INDEX "i" ON photos;
CREATE INDEX i ON photos (vec) USING IVF_HNSW_FLAT WITH (params = '{"num_partitions": 1, "m": 8}');
SHOW INDEXES ON photos;
--> i | IVF_HNSW_FLAT | vec | 600 | …
DROP INDEX "i" ON photos;
SHOW INDEXES ON photos;

--= all spellings of a table name it
--each name: photos | lance.photos | lance.main."PHOTOS" | 'photos.lance'

CREATE INDEX i ON {name} (id);
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | BTree | id | 600
SHOW INDEXES ON {name};
--> i | BTree | id | 600 | …
ALTER INDEX i ON {name} OPTIMIZE; REINDEX i ON {name}; DROP INDEX i ON {name};
SHOW INDEXES ON {name};

--= what an index covers follows when it is optimized

CREATE INDEX i ON photos (id); CREATE INDEX l ON photos USING BITMAP (label);
INSERT INTO photos SELECT * REPLACE (id + 1000 AS id) FROM photos LIMIT 50;
--> 50
SELECT index_name, rows_indexed FROM lance_indexes('photos');
--> i | 600
--> l | 600
ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'append');
--> optimize_index | {folder}/photos.lance | …
SELECT index_name, rows_indexed FROM lance_indexes('photos');
--> i | 650
--> l | 600
ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'merge', num_indices_to_merge = 4);
--~ "i": {"rows_indexed": 650, "segments": 1}
REINDEX photos;
SELECT index_name, rows_indexed FROM lance_indexes('photos');
--> i | 650
--> l | 650

--= an appended index has one more segment

CREATE INDEX i ON photos (id);
INSERT INTO photos SELECT * REPLACE (id + 1000 AS id) FROM photos LIMIT 50;
--> 50
ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'append');
--~ "i": {"rows_indexed": 650, "segments": 2}

--= an index that was not trained is built by RETRAIN

CREATE INDEX i ON photos (id) WITH (train = false);
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | BTree | id | 0
REINDEX i ON photos RETRAIN;
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | BTree | id | 600

--= names of indexes are taken once

CREATE INDEX i ON photos (id);
CREATE INDEX i ON photos (id);
--! IndexExistsError: … 'i'
CREATE INDEX IF NOT EXISTS i ON photos (label);
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | BTree | id | 600
CREATE OR REPLACE INDEX i ON photos (id) USING BITMAP;
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | Bitmap | id | 600
CREATE INDEX i ON photos (id) WITH (replace = true);
SELECT index_name, index_type, fields, rows_indexed FROM lance_indexes('photos');
--> i | BTree | id | 600
DROP INDEX j ON photos;
--! IndexNotFoundError: … no index 'j'
DROP INDEX IF EXISTS j ON photos;

--= forms of indexes that make no sense are refused

CREATE UNIQUE INDEX i ON photos (id);
--! UnsupportedError: … UNIQUE
CREATE INDEX i ON photos (id) USING INVERTED;
--! NotIndexableError: … index kind Inverted does not support
CREATE INDEX i ON photos (id) USING btre;
--! NotIndexableError: … did you mean 'BTREE'
CREATE INDEX i ON photos (vec) USING IVF_HNSW_RQ;
--! NotIndexableError: … IVF_HNSW_RQ is not a supported kind
CREATE INDEX i ON photos (vec);
--! InvalidInputError: … needs an index kind: expected USING one of IVF_FLAT
CREATE INDEX i ON photos (label) USING IVF_FLAT;
--! NotIndexableError: … label
CREATE INDEX i ON photos (id, label);
--! UnsupportedError: … expected one column, found id, label
CREATE INDEX i ON photos (id + 1);
--! UnsupportedError: … expected one column, found id + 1
CREATE INDEX i ON photos (nope);
--! UnknownColumnError: … nope
CREATE INDEX i ON photos;
--! InvalidInputError: … syntax of CREATE INDEX … the end of the statement
CREATE INDEX i ON photos id;
--! InvalidInputError: … syntax of CREATE INDEX
CREATE INDEX i ON photos (id) WITH (num_partitions = 2);
--! WrongTypeError: … num_partitions
CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (num_partition = 2);
--! WrongTypeError: … unknown option 'num_partition'; did you mean 'num_partitions'
CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (metric = 'l2', metric_type = 'l2');
--! InvalidInputError: … two options with the same meaning
CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (metric = 'l3');
--! InvalidInputError: … l3
CREATE INDEX i ON photos (id) WITH (name = 'x');
--! WrongTypeError: … unknown option 'name'
CREATE INDEX i ON photos (id) WITH (params = '[1]');
--! InvalidInputError: … a JSON object
CREATE INDEX i ON photos (id) rubbish;
--! InvalidInputError: … found rubbish
ALTER INDEX i ON photos RENAME TO j;
--! UnsupportedError: … to rename an index
ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'apend');
--! InvalidInputError: … did you mean 'append'
ALTER INDEX i ON photos OPTIMIZE;
--! IndexNotFoundError: … no index 'i'
REINDEX i ON photos;
--! IndexNotFoundError: … no index 'i'
SELECT version FROM lance_info('photos');
--> 1

--= changes of indexes are explained, and refused in transactions and on connections for reading
--each sql: CREATE INDEX j ON photos (label) | DROP INDEX i ON photos
--each sql: ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'retrain') | REINDEX photos RETRAIN

CREATE INDEX i ON photos (id);
EXPLAIN {sql};
--~ Nothing was written
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
SHOW INDEXES ON photos;
--> i | BTree | id | 600 | …
SELECT version FROM lance_info('photos');
--> 2

--= indexes are shown as a transaction sees the table

CREATE INDEX i ON photos (id);
BEGIN; DELETE FROM photos WHERE id < 100;
--> 100
SHOW INDEXES ON photos;
--> i | BTree | id | 500 | …
ROLLBACK;
SHOW INDEXES ON photos;
--> i | BTree | id | 600 | …

--= indexes of tables of DuckDB are its own

CREATE TEMP TABLE own (a INTEGER); CREATE UNIQUE INDEX i ON own (a);
SELECT index_name FROM duckdb_indexes();
--> i
DROP INDEX i;
SHOW INDEXES ON own;
--! UnsupportedError: … own: not a Lance table
