-- COPY: rows into Lance tables at a path, and out of Lance tables into other files.

CREATE TABLE lance.t AS SELECT range AS id, 'n' || range AS name FROM range(3);
--> 3

COPY t TO '{folder}/t.csv';
--> 3

SELECT * FROM '{folder}/t.csv' ORDER BY id;
--> 0 | n0
--> 1 | n1
--> 2 | n2

COPY (SELECT id FROM t WHERE id > 0) TO '{folder}/t.parquet' (FORMAT parquet);
--> 2

--only lance
COPY (SELECT id, name FROM '{folder}/t.csv') TO '{folder}/c.lance';
--> 3

--only lance
COPY t TO '{folder}/c.lance' (FORMAT lance, MODE 'append');
--> 3

--only lance
SELECT count(*), max(name) FROM '{folder}/c.lance';
--> 6 | n2

--only lance
COPY (SELECT 1 AS id) TO '{folder}/c.lance' (FORMAT lance, MODE 'create');
--! c.lance

--only lance
COPY (SELECT 1 AS id) TO '{folder}/c.lance';
--> 1

--only lance
FROM '{folder}/c.lance';
--> 1

--only lance
COPY t TO '{folder}/c.lance' (FORMAT csv);
--! csv
