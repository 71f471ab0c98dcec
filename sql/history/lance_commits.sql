-- lance_commits: one row for each commit of several tables of a folder, newest first. The last 100 are kept, and those of a week.
--
--   folder       name of an attached Lance database, or a folder or URI; default: the current database
--
-- Columns: number, id, timestamp, outcome (published, undone, partly, unfinished, unreadable), tables (folders), base_versions,
-- moves (of folders), reason (why a commit was taken back), writer.
-- Example: FROM lance_commits()
CREATE OR REPLACE TEMP MACRO lance_commits(folder := NULL) AS TABLE
    FROM query(__lance_history(
        'commits', folder::VARCHAR, NULL, [NULL, NULL, NULL, NULL::VARCHAR], NULL, current_setting('search_path')
    ));
