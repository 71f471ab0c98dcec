-- COPY with FORMAT lance: Lance tables at paths without `.lance`, and Lance tables copied into native tables.

CREATE TABLE lance.t AS SELECT range AS id, 'n' || range AS name FROM range(3);
--> 3
CREATE TABLE memory.main.native (id BIGINT, name VARCHAR);

--= any path is written, and read again, with FORMAT lance
--each options: (FORMAT lance) | (format 'LANCE') | ("format" "Lance") | WITH (FORMAT lance, MODE 'create') | (MODE append, FORMAT lance)
--each source: t | lance.t | t (id, name) | (FROM t)

COPY {source} TO '{folder}/table' {options};
--> 3
FROM lance_scan('{folder}/table') ORDER BY id;
--> 0 | n0
--> 1 | n1
--> 2 | n2
COPY native FROM '{folder}/table' (FORMAT lance);
--> 3
COPY t FROM '{folder}/table' (FORMAT lance);
--> 3
SELECT (SELECT count(*) FROM t), (SELECT sum(id) FROM native);
--> 6 | 3

--= paths can be expressions, names and Lance paths
--each path: ('{folder}/a' || 1) | unquoted | '{folder}/b.lance' | '{folder}/c.csv' | $${folder}/d$$

COPY t TO {path} (FORMAT lance, data_storage_version '2.1');
--> 3
COPY native (name) FROM {path} (FORMAT lance);
--! name
COPY native FROM {path} (FORMAT lance);
--> 3
COPY t (id, name) FROM {path} WITH (FORMAT lance);
--> 3
EXPLAIN COPY native FROM {path} (FORMAT lance);
--~ LanceScan
SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM native);
--> 6 | 3

--= a Lance path does not need the format

COPY native FROM '{folder}/t.lance';
--> 3
COPY native (id) FROM '{folder}/t.lance' (FORMAT csv);
--! UnsupportedError: … FORMAT csv
--on reader
COPY t FROM '{folder}/t.lance' (FORMAT lance);
--! UnsupportedError: … read-only

--= other formats and options stay DuckDB's

COPY t TO '{folder}/lance' (FORMAT csv);
--> 3
COPY t TO '{folder}/lance' (FORMAT lence);
--! CatalogException: … lence
COPY t TO '{folder}/lance' (FORMAT lance);
--! AlreadyExistsError: … a file already has this path
COPY t TO '{folder}/other' (FORMAT lance, HEADER);
--! WrongTypeError: … unknown option 'header'
COPY t FROM '{folder}/other' (FORMAT lance, HEADER);
--! WrongTypeError: … unknown option 'header'
COPY native FROM '{folder}/other' (FORMAT lance);
--! NotFoundError: … other
COPY missing FROM '{folder}/t.lance' (FORMAT lance);
--! CatalogException: … missing
COPY t TO STDOUT (FORMAT lance);
--! AlreadyExistsError: /dev/stdout
COPY t TO '{folder}/t.lance/data/x' (FORMAT lance);
--! UnsupportedError
