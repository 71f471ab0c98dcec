-- lance_vector_search: the rows of a Lance table nearest to a vector, nearest first, with their `_distance`.
--
--   table_name      folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   column_name     column of vectors
--   query_vector    as many numbers as a vector of the column has; a list of such lists gives the rows nearest to each,
--                   with its place in the list as `query_index`
--   k               rows that are found at most, for each query
--   nprobes         partitions of an index to look into first
--   refine_factor   so many times k rows of an index are ranked by their own vectors
--   ef              candidates of a walk over a graph
--   recall          share of the true neighbours that an index has to find where none of nprobes, refine_factor and ef
--                   is given; NULL: 0.95
--   metric          'l2', 'cosine', 'dot' or 'hamming'; NULL: that of the index, or that of the column
--   prefilter       true: k rows that pass the filter are found; false: of the k nearest rows those that pass it
--   filter          condition of rows, as text: read as `filter=` is in Python, in UTC and by the bytes of texts, whatever
--                   settings the connection has
--   use_index       false: all vectors are compared
--   version         version number, name of a tag, name of a branch, or 'branch:number'
--   tag             name of a tag
--   asof            point in time (timestamp or text): the newest version that is not younger; without a zone it is in
--                   the TimeZone of the connection
--   nprobs          nprobes, as the lance extension of DuckDB calls it
--   explain_verbose of that extension; without effect: EXPLAIN says all that there is
--
-- WHERE applies to the rows found; if `prefilter := true` is written, it chooses among all rows. Arguments are
-- constants or parameters, never columns; at most one of version, tag and asof.
-- Example: FROM lance_vector_search('data/photos.lance', 'vec', [0.1, 0.7]::FLOAT[], k := 5, filter := 'year > 2020')
CREATE OR REPLACE TEMP MACRO lance_vector_search(
    table_name, column_name, query_vector, k := 10, nprobes := NULL, refine_factor := NULL, ef := NULL,
    metric := NULL, prefilter := true, "filter" := NULL, use_index := true, version := NULL, tag := NULL, "asof" := NULL,
    branch := NULL, nprobs := NULL, explain_verbose := NULL, recall := NULL
) AS TABLE
    FROM query(__lance_nearest(
        table_name::VARCHAR, column_name::VARCHAR, query_vector::VARCHAR, k::BIGINT, coalesce(nprobes, nprobs)::BIGINT,
        refine_factor::BIGINT, ef::BIGINT, metric::VARCHAR, prefilter::BOOLEAN, "filter"::VARCHAR, use_index::BOOLEAN,
        version::VARCHAR, tag::VARCHAR,
        coalesce(strftime(make_timestamp(epoch_us(TRY_CAST("asof" AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), "asof"::VARCHAR),
        branch::VARCHAR, recall::DOUBLE, current_setting('search_path')
    ));
