-- lance_scan: rows of a Lance table, at its newest version or at a chosen one.
--
--   path      folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   version   version number, name of a tag, name of a branch, or 'branch:number'
--   tag       name of a tag
--   asof      point in time (timestamp or text): the newest version that is not younger; without a zone it is in the
--             TimeZone of the connection
--   branch    name of the branch that these are of
--   with_row_id, with_row_address
--             whether _rowid and _rowaddr come behind the columns of the table
--
-- At most one of version, tag and asof. Arguments are constants or parameters, never columns.
-- Example: FROM lance_scan('data/trips.lance', version := 3)
CREATE OR REPLACE TEMP MACRO lance_scan(path, version := NULL, tag := NULL, "asof" := NULL, branch := NULL,
    with_row_id := false, with_row_address := false) AS TABLE
    FROM query(__lance_bind(
        path::VARCHAR, version::VARCHAR, tag::VARCHAR,
        coalesce(strftime(make_timestamp(epoch_us(TRY_CAST("asof" AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), "asof"::VARCHAR),
        branch::VARCHAR, current_setting('search_path'),
        concat_ws(' ', if(with_row_id, '_rowid', NULL), if(with_row_address, '_rowaddr', NULL))
    ));
