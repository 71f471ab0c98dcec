-- What SET takes
UPDATE t SET a = 1
UPDATE t SET a = a + 1, s = s || '!' WHERE id > 2
UPDATE t SET a = DEFAULT
UPDATE t SET (a, s) = (1, 'x')
UPDATE t SET (a, s) = ROW(1, 'x') WHERE id = 1
UPDATE t SET (a, s) = (DEFAULT, DEFAULT)
UPDATE t SET (a) = 5
UPDATE t SET (a) = (5)
UPDATE t SET (a, s) = (SELECT 7, 'z')
UPDATE t SET (a, s) = 7
UPDATE t SET (a, s) = (1, 2, 3)
UPDATE t SET a = 1, a = 2
UPDATE t SET a = 1, A = 2
UPDATE t SET "A" = 9
UPDATE t SET nope = 1
UPDATE t SET t.a = 1
UPDATE t SET st.x = 5
UPDATE t SET st = {'x': 5, 'y': 'n'}
UPDATE t SET st = struct_pack(x := id, y := s)
UPDATE t SET st = struct_insert(st, z := 1)
UPDATE t SET st = {'y': 'n', 'x': 5}
UPDATE t SET st = {'x': 5}
UPDATE t SET st = ROW(5, 'n')
UPDATE t SET st = NULL
UPDATE t SET st = st
UPDATE t SET l = [id, a, NULL]
UPDATE t SET l[1] = 3
UPDATE t SET l = list_transform(l, x -> x + 1)
UPDATE t SET l = [x + 1 for x in l if x > 1]
UPDATE t SET l = list_transform(l, lambda x: x + id)
UPDATE t SET l = '[1, 2]'
UPDATE t SET a = '12'
UPDATE t SET a = 'x'
UPDATE t SET a = 1.5
UPDATE t SET a = 2.5
UPDATE t SET a = 3000000000
UPDATE t SET a = true
UPDATE t SET d = a
UPDATE t SET s = DATE '2020-01-02'
UPDATE t SET s = l
UPDATE t SET id = NULL
UPDATE t SET id = a
UPDATE t SET id = id + 100 RETURNING id
UPDATE t SET a = id, id = coalesce(a, -1)
UPDATE t SET a = CASE WHEN id > 2 THEN a ELSE id END
UPDATE t SET a = CASE id WHEN 1 THEN 10 WHEN 2 THEN 20 END WHERE CASE WHEN id > 1 THEN true END
UPDATE t SET a = (SELECT max(id) FROM t)
UPDATE t SET a = (SELECT max(x.id) FROM t AS x WHERE x.id < t.id)
UPDATE t SET a = (SELECT b FROM u WHERE u.id = t.id LIMIT 1)
UPDATE t SET a = (SELECT count(*) FROM u WHERE u.id = t.id)
UPDATE t SET a = (SELECT id FROM u)
UPDATE t SET a = (SELECT b FROM u WHERE false)
UPDATE t SET a = (SELECT id, b FROM u LIMIT 1)
UPDATE t SET a = max(id)
UPDATE t SET a = count(*)
UPDATE t SET a = row_number() OVER ()
UPDATE t SET a = row_number() OVER (ORDER BY id) WHERE id > 1
UPDATE t SET a = (SELECT r FROM (SELECT id AS i, row_number() OVER (ORDER BY id) AS r FROM t) WHERE i = t.id)
UPDATE t SET a = unnest([1, 2])
UPDATE t SET a = unnest(l)
UPDATE t SET a = (SELECT max(v) FROM unnest(l) AS q(v))
UPDATE t SET a = (SELECT sum(v) FROM (SELECT unnest(l) AS v))
UPDATE t SET a = *
UPDATE t SET a = COLUMNS('a')
UPDATE t SET a = COLUMNS(*)
UPDATE t SET a = greatest(*COLUMNS('id|a'))
UPDATE t SET a = coalesce(*COLUMNS(['a', 'id']))
UPDATE t SET a = len([*COLUMNS(*)])
UPDATE t SET s = concat(*COLUMNS(*))
UPDATE t SET s = concat(*COLUMNS(t.*))
UPDATE t SET s = to_json(t)
UPDATE t SET s = to_json(T)
UPDATE t SET s = "t"::VARCHAR
UPDATE t AS z SET s = to_json(z)
UPDATE t z SET s = z::VARCHAR WHERE z.id > 1
UPDATE t z SET s = t::VARCHAR
UPDATE t SET s = to_json(struct_pack(t.*))
UPDATE t SET a = len(struct_keys(t))
UPDATE t SET s = (SELECT to_json(t))
UPDATE t SET s = (SELECT to_json(x) FROM t AS x WHERE x.id = t.id)
UPDATE t SET s = (SELECT to_json(q) FROM (SELECT t.*) AS q)
UPDATE t SET s = (SELECT q::VARCHAR FROM (SELECT t.id, t.a) AS q)
UPDATE t SET s = (SELECT to_json(t) FROM u AS t LIMIT 1)
UPDATE t SET s = {'t': 1}::VARCHAR
UPDATE t SET a = (t).id
UPDATE t SET s = 'hit' WHERE rowid = 0
UPDATE t SET a = rowid
UPDATE t SET a = t.rowid + 1 WHERE t.rowid > 0
UPDATE t SET s = 'first' WHERE rowid IN (SELECT min(rowid) FROM t GROUP BY a)
UPDATE t SET a = 1 WHERE rowid = (SELECT max(rowid) FROM t)
UPDATE t SET a = 1 RETURNING rowid
UPDATE t SET a = 1 RETURNING _rowaddr
UPDATE t SET rowid = 1
UPDATE t SET _rowaddr = 1
UPDATE t SET a = ?
UPDATE t SET a = $1 WHERE id = $2
UPDATE t SET a = nextval('seq')
UPDATE t SET a = (nextval('seq'))::INTEGER WHERE id < 3
UPDATE t SET ts = TIMESTAMP '2020-01-01 00:00:00.123456'
UPDATE t SET a = id IN (SELECT id FROM u)
UPDATE t SET a = EXISTS (FROM u WHERE u.id = t.id)
UPDATE t SET a = [x.b FOR x IN (SELECT list(u) FROM u WHERE u.id = t.id)][1]
UPDATE t SET a = substring('abc' FROM 2 FOR 1) = 'b'
UPDATE t SET a = extract(year FROM DATE '2020-01-01')
UPDATE t SET a = 1 WHERE a IS DISTINCT FROM id
UPDATE t SET a = 1 WHERE a IS NOT DISTINCT FROM NULL
-- Heads, aliases, names
UPDATE main.t SET a = 1
UPDATE t AS x SET a = x.id
UPDATE t x SET a = x.id WHERE x.a IS NULL
UPDATE t AS x SET a = t.id
UPDATE t AS "set" SET a = "set".id
UPDATE t AS x(p, q) SET a = 1
UPDATE t SET a = 1 LIMIT 1
UPDATE t SET a = 1 ORDER BY id
UPDATE t SET a = 1;
UPDATE t SET a = 1 -- comment
UPDATE t /* FROM */ SET a = 1 /* WHERE false */
UPDATE nope SET a = 1
UPDATE t BY NAME SET a = 1
UPDATE OR REPLACE t SET a = 1
UPDATE t SET
UPDATE t
WITH q AS (SELECT 3 AS k) UPDATE t SET a = k FROM q WHERE id = k
WITH q AS (SELECT 3 AS k) UPDATE t SET a = (SELECT k FROM q)
WITH q(k) AS (VALUES (1), (2)) UPDATE t SET a = 0 WHERE id IN (FROM q)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) UPDATE t SET a = -n FROM r WHERE id = n
WITH t AS (SELECT 5 AS id) UPDATE t SET a = 3
WITH T AS (SELECT 5 AS id) UPDATE t SET a = 3 WHERE id = 5
WITH q AS (SELECT * FROM t) UPDATE t SET a = q.id FROM q WHERE q.id = t.id
WITH q AS MATERIALIZED (SELECT * FROM t WHERE id > 2) UPDATE t SET a = 7 WHERE id IN (SELECT id FROM q)
WITH u AS (SELECT 2 AS id, 5 AS b) UPDATE t SET a = u.b FROM u WHERE u.id = t.id
-- FROM
UPDATE t SET a = u.b FROM u WHERE u.id = t.id AND u.b >= 200
UPDATE t SET a = b FROM u WHERE u.id = t.id AND u.b >= 200
UPDATE t SET a = u.b FROM u WHERE u.id = t.id AND u.b >= 200 RETURNING t.id, a
UPDATE t SET a = u.b FROM u WHERE u.id = t.id AND u.b >= 200 RETURNING b
UPDATE t SET a = u.b FROM u WHERE u.id = t.id AND u.b >= 200 RETURNING u.b
UPDATE t SET a = q.b FROM (SELECT id, max(b) AS b FROM u GROUP BY id) AS q WHERE q.id = t.id
UPDATE t SET a = q.b FROM (SELECT id, max(b) AS b FROM u GROUP BY id) q(id, b) WHERE q.id = t.id RETURNING s
UPDATE t SET a = x.b FROM u AS x, (VALUES (200), (300)) AS v(b) WHERE x.id = t.id AND v.b = x.b
UPDATE t SET a = x.b FROM u AS x JOIN (VALUES (200), (300)) AS v(b) ON v.b = x.b WHERE x.id = t.id
UPDATE t SET a = x.b FROM u AS x JOIN (VALUES (200), (300)) AS v(b) USING (b) WHERE x.id = t.id
UPDATE t SET a = x.b FROM u x LEFT JOIN t y ON x.id = y.id WHERE x.id = t.id AND x.b >= 200
UPDATE t SET a = y.id FROM t AS y WHERE y.id = t.id + 1
UPDATE t SET a = y.id FROM t AS y WHERE y.id = t.id RETURNING t.*
UPDATE t SET a = t.id FROM t WHERE t.id = 1
UPDATE t SET a = x.id FROM t WHERE t.id = x.id
UPDATE t AS x SET a = t.id + 1 FROM t WHERE t.id = x.id
UPDATE t SET a = q.x FROM (SELECT t.id AS x) q
UPDATE t SET a = r.v FROM range(3) r(v) WHERE r.v = t.id
UPDATE t SET a = v FROM unnest([1, 2]) q(v) WHERE v = t.id
UPDATE t SET a = v FROM unnest(l) q(v)
UPDATE t SET a = v FROM LATERAL (SELECT t.id + 1 AS v)
UPDATE t SET a = v FROM (VALUES (1, 10), (2, 20)) AS q(k, v) WHERE k = id
UPDATE t SET s = to_json(u) FROM u WHERE u.id = t.id AND u.b >= 200
UPDATE t SET s = to_json(t) FROM u WHERE u.id = t.id AND u.b >= 200
UPDATE t SET a = len([*COLUMNS(*)]) FROM u WHERE u.id = t.id
-- RETURNING
UPDATE t SET a = 1 RETURNING *
UPDATE t SET a = 1 WHERE id = 2 RETURNING id, a + 1 AS more
UPDATE t SET a = 1 RETURNING t.*
UPDATE t AS z SET a = 1 RETURNING z.*
UPDATE t AS z SET a = 1 RETURNING t.*
UPDATE t AS z SET a = 1 RETURNING z.id, *
UPDATE t SET a = 1 RETURNING t
UPDATE t SET a = 1 RETURNING to_json(t) AS j
UPDATE t SET a = 1 RETURNING * EXCLUDE (l, st)
UPDATE t SET a = 1 RETURNING * REPLACE (id + 1 AS id)
UPDATE t SET a = 1 RETURNING * RENAME (id AS key)
UPDATE t SET a = 1 RETURNING COLUMNS('i.*|a')
UPDATE t SET a = 1 RETURNING COLUMNS(c -> c LIKE 's%')
UPDATE t SET a = 1 RETURNING id, id
UPDATE t SET a = 1 RETURNING id + 1, id * 2
UPDATE t SET a = 1 RETURNING upper(s), len(l), st.x
UPDATE t SET a = 1 RETURNING count(*)
UPDATE t SET a = 1 RETURNING sum(a) OVER ()
UPDATE t SET a = 1 RETURNING unnest(l)
UPDATE t SET a = 1 RETURNING (SELECT max(b) FROM u)
UPDATE t SET a = 1 RETURNING (SELECT max(b) FROM u WHERE u.id = t.id)
UPDATE t SET a = 1 RETURNING (SELECT max(a) FROM t)
UPDATE t SET a = 1 RETURNING DISTINCT a
UPDATE t SET a = 1 RETURNING id ORDER BY id
UPDATE t SET a = 1 RETURNING id, a AS "returning"
UPDATE t SET a = 1 RETURNING 1
UPDATE t SET a = 1 RETURNING id::VARCHAR, ts, st, l
UPDATE t SET a = 1 RETURNING nope
UPDATE t SET a = 1 WHERE false RETURNING *
UPDATE t SET a = 1 WHERE false
UPDATE t SET a = 1 WHERE NULL
UPDATE t SET a = 1 WHERE 1
UPDATE t SET a = 1 WHERE 'x'
UPDATE t SET a = 1 WHERE count(*) > 1
UPDATE t SET a = 1 WHERE row_number() OVER () = 1
UPDATE t SET a = 1 WHERE t.id IN (SELECT t.id FROM t)
UPDATE t SET a = 1 WHERE (id, a) IN (SELECT (id, a) FROM t)
UPDATE t SET a = 1 WHERE (id, s) = (1, 'one')
UPDATE t SET a = 1 WHERE t = t
UPDATE t SET a = 1 WHERE t IS NULL
UPDATE t SET a = 1 WHERE to_json(t)::VARCHAR LIKE '%two%'
UPDATE t SET a = 1 WHERE COLUMNS('id|a') > 1
UPDATE t SET a = 1 WHERE COLUMNS(*) IS NOT NULL
UPDATE t SET a = 1 WHERE s SIMILAR TO 'o.*' OR s ILIKE 'TW%'
UPDATE t SET a = 1 WHERE s GLOB 't*'
UPDATE t SET a = 1 WHERE id BETWEEN 2 AND 3 AND NOT (a = 5)
-- Columns whose names are keywords
UPDATE k SET conflict = 1
UPDATE k SET "set" = 1, "where" = 2
UPDATE k SET set = 1
UPDATE k SET set = set + 1, values = values + 1 WHERE set > 0
UPDATE k SET "returning" = conflict RETURNING "returning"
UPDATE k SET conflict = 1 RETURNING *
UPDATE k SET "from" = 1 WHERE "from" = 1
UPDATE k SET values = 1 WHERE conflict = 1 RETURNING values
UPDATE k AS set SET set = 1
UPDATE k AS z SET "set" = z.set + z.values WHERE z."where" > 0 RETURNING z."returning"
UPDATE k SET "end" = 1
UPDATE k SET "end" = CASE WHEN "end" > 0 THEN "case" END
UPDATE k SET "case" = k.end + k."case"
UPDATE k SET matched = 1 RETURNING matched
UPDATE k SET returning = 1
UPDATE k SET "using" = 1, replace = 2, ignore = 3, name = 4, position = 5 RETURNING "using", replace, ignore, name, position
UPDATE k SET "default" = DEFAULT, values = 3
UPDATE k SET values = "default"
-- Other types
UPDATE y SET iv = INTERVAL 24 HOUR
UPDATE y SET iv = iv + INTERVAL 1 HOUR
UPDATE y SET v = 2
UPDATE y SET v = 2 RETURNING id, iv, dec, arr, ls
UPDATE y SET iv = INTERVAL 3 SECOND WHERE id = 1 RETURNING id, iv
UPDATE y SET v = 1 WHERE iv > INTERVAL 1 HOUR
UPDATE y SET iv = NULL
UPDATE y SET tz = TIMESTAMPTZ '2020-01-01 00:00:00+00', dec = 1.25, bl = 'ab'::BLOB, b = false, tm = TIME '01:02:03', dt = DATE '2020-02-02'
UPDATE y SET dec = 1.255 RETURNING dec
UPDATE y SET dec = 12345678901
UPDATE y SET arr = [1, 2, 3]
UPDATE y SET arr = [1, 2]
UPDATE y SET arr = array_value(7, 8, 9)::FLOAT[3] RETURNING arr
UPDATE y SET u8 = 255
UPDATE y SET u8 = 256
UPDATE y SET u8 = -1
UPDATE y SET bl = 'abc', b = 'true', dt = '2021-01-01', tm = '10:00', tz = '2020-01-01 00:00:00+00'
UPDATE y SET ls = [{'p': 1, 'q': ['x']}] RETURNING ls
UPDATE y SET ls = list_append(ls, {'p': 3, 'q': NULL})
