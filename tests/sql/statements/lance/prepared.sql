-- PREPARE, EXECUTE and DEALLOCATE of statements about Lance tables.

CREATE TABLE lance.trips AS SELECT i AS id, ['a', 'b', 'c', 'a', 'b'][i + 1] AS city FROM range(5) r(i);
--> 5
INSERT INTO trips VALUES (5, 'x'), (6, 'y'), (7, 'z');
--> 3
CALL lance_create_tag('trips', 'second', 2);
DELETE FROM trips WHERE id = 6;
--> 1

--= a prepared change runs with its values (1)

PREPARE x AS INSERT INTO trips VALUES ($1, $2);
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(9, 'n' || 'n');
--> 1
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 9 | nn

--= a prepared change runs with its values (2)

PREPARE x AS INSERT INTO trips VALUES (?, ?);
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(9, NULL);
--> 1
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 9 | NULL

--= a prepared change runs with its values (3)

PREPARE x AS INSERT INTO trips (id) SELECT $1 + $1;
SELECT version FROM lance_info('trips');
--> 3
EXECUTE X(4.5);
--> 1
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 9 | NULL

--= a prepared change runs with its values (4)

PREPARE x AS UPDATE trips SET city = $c WHERE id > $i RETURNING *;
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(i := 6, c := 'it''s');
--> 7 | it's
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 7 | it's

--= a prepared change runs with its values (5)

PREPARE x AS DELETE FROM lance.trips WHERE id <> -$1;
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(-7);
--> 6
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 7 | z

--= a prepared change runs with its values (6)

PREPARE x AS TRUNCATE trips;
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x;
--> 7
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);

--= a prepared change runs with its values (7)

PREPARE x AS WITH q AS (SELECT $1 AS k) DELETE FROM trips USING q WHERE id > k;
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(5);
--> 1
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);

--= a prepared change runs with its values (8)

PREPARE x AS MERGE INTO trips USING (SELECT $1 AS id) s USING (id) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(9);
--> 1
SELECT version FROM lance_info('trips');
--> 4
FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1);
--> 9 | NULL

--= a prepared change reads the newest version each time

PREPARE grow AS INSERT INTO trips SELECT count(*), $1 FROM trips; PREPARE read AS SELECT count(*) FROM trips;
EXECUTE grow('a'); EXECUTE grow('b'); EXECUTE grow('a');
--> 1
EXECUTE read;
--> 10
SELECT id FROM trips WHERE id > 7 ORDER BY id;
--> 8
--> 9
--on other
DELETE FROM trips WHERE id > 3;
--> 6
EXECUTE read;
--> 4
BEGIN; DELETE FROM trips WHERE id > 1;
--> 2
EXECUTE read;
--> 2
EXECUTE grow('x'); ROLLBACK;
EXECUTE read;
--> 4

--= values that do not fit change nothing

PREPARE x AS INSERT INTO trips VALUES ($1, $2);
EXECUTE x(1);
--! InvalidInputError
EXECUTE x(1, 'a', 2);
--! InvalidInputError
EXECUTE x(a := 1, b := 'a');
--! InvalidInputError
EXECUTE x;
--! InvalidInputError
EXECUTE x(?, ?);
--! InvalidInputError
EXECUTE x(id, 'a');
--! Error
EXECUTE x((SELECT max(id) FROM trips), 'a');
--! Error
EXECUTE x('no number', 'a');
--! Error
EXECUTE nobody(1, 'a');
--! Error
SELECT version FROM lance_info('trips');
--> 3
EXECUTE x(9, 'n');
--> 1
SELECT version FROM lance_info('trips');
--> 4

--= values are evaluated once

PREPARE x AS UPDATE trips SET city = $1 || '|' || $1; EXECUTE x(random()::VARCHAR);
--> 7
SELECT count(DISTINCT city), bool_and(split_part(city, '|', 1) = split_part(city, '|', 2)) FROM trips;
--> 1 | true

--= a prepared change is let go of and replaced

PREPARE x AS DELETE FROM trips WHERE id = $1; DEALLOCATE x;
EXECUTE x(1);
--! does not exist
PREPARE x AS DELETE FROM trips WHERE id = $1; PREPARE x AS SELECT $1 + 1;
EXECUTE x(1);
--> 2
DEALLOCATE PREPARE x;
EXECUTE x(1);
--! does not exist
PREPARE x AS DELETE FROM trips WHERE;
--! ParserException
SELECT version FROM lance_info('trips');
--> 3

--= EXPLAIN of EXECUTE writes nothing

PREPARE x AS DELETE FROM trips WHERE id = $1;
EXPLAIN EXECUTE x(1);
--~ Nothing was written
SELECT version FROM lance_info('trips');
--> 3

--= transactions are prepared

PREPARE b AS BEGIN; PREPARE c AS COMMIT; EXECUTE b; DELETE FROM trips WHERE id = 1; TRUNCATE trips;
--> 6
--on other
SELECT version FROM lance_info('trips');
--> 3
EXECUTE c;
SELECT version FROM lance_info('trips');
--> 4

--= a prepared SELECT through a view or macro reads the newest version
--each reads: FROM seen | FROM over_seen | FROM called()

CREATE VIEW seen AS SELECT id FROM trips WHERE id > 1; CREATE VIEW over_seen AS FROM seen;
CREATE MACRO called() AS TABLE FROM seen;
PREPARE p AS SELECT count(*) {reads} WHERE id < ?;
EXECUTE p(1000);
--> 5
INSERT INTO trips (id) VALUES (77), (78);
--> 2
EXECUTE p(1000);
--> 7
BEGIN; DELETE FROM trips WHERE id = 77;
--> 1
EXECUTE p(1000);
--> 6
ROLLBACK;
EXECUTE p(1000);
--> 7

--= changes that are prepared, or one of several, read older versions
--each version: AT (VERSION => 1) AS r | AT (VERSION => (SELECT 1))

PREPARE x AS INSERT INTO trips SELECT -count(*), 'old' FROM trips {version}; EXECUTE x;
--> 1
INSERT INTO trips SELECT -count(*), 'old' FROM trips {version}; SELECT 1;
--> 1
SELECT id FROM trips WHERE city = 'old';
--> -5
--> -5

--= changes that are prepared, or one of several, read a tagged version

PREPARE x AS INSERT INTO trips SELECT -count(*), 'old' FROM trips AS r AT (VERSION => 'second'); EXECUTE x;
--> 1
INSERT INTO trips SELECT -count(*), 'old' FROM trips AS r AT (VERSION => 'second'); SELECT 1;
--> 1
SELECT id FROM trips WHERE city = 'old';
--> -8
--> -8

--= a prepared statement reads a view that was made later as the transaction does

CREATE TABLE memory.later AS SELECT 7 AS id;
--> 1
PREPARE p AS SELECT max(id) + $1 FROM later;
DROP TABLE memory.later;
CREATE VIEW memory.later AS FROM trips;
BEGIN;
INSERT INTO trips VALUES (40, 'new');
--> 1
EXECUTE p(2);
--> 42
ROLLBACK;
