-- lance_fts: the rows of a Lance table that match a full-text query, best first, with their `_score`.
--
--   table_name      folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   text_column     column of texts; an index is used where there is one, and changes no score
--   query           words, of which one is enough; a phrase in double quotes: '"two words"'; or the JSON form of a query, where
--                   column may be left out: '{"match": {"terms": "two words", "operator": "AND"}}'
--   k               rows that are found at most
--   prefilter       true: k rows that pass the filter are found; false: of the k best rows those that pass it
--   filter          condition of rows, as for lance_vector_search
--   version, tag, asof, branch   as for lance_vector_search
--
-- WHERE applies to the rows found; if `prefilter := true` is written, it chooses among all rows. Arguments are
-- constants or parameters, never columns.
-- Example: FROM lance_fts('data/books.lance', 'body', 'whale ship', k := 5, filter := 'year > 1850')
CREATE OR REPLACE TEMP MACRO lance_fts(
    table_name, text_column, query, k := 10, prefilter := true, "filter" := NULL, version := NULL, tag := NULL,
    "asof" := NULL, branch := NULL
) AS TABLE
    FROM query(__lance_text(
        table_name::VARCHAR, text_column::VARCHAR, query::VARCHAR, k::BIGINT, prefilter::BOOLEAN, "filter"::VARCHAR,
        version::VARCHAR, tag::VARCHAR,
        coalesce(strftime(make_timestamp(epoch_us(TRY_CAST("asof" AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), "asof"::VARCHAR),
        branch::VARCHAR, current_setting('search_path')
    ));
