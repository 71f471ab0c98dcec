"""Commits of several tables of one folder: all or nothing for everybody who reads the folder as a database.

You hold: staged changes of tables, and folders of tables to move. You get: one version of each table, or none. A log
beside the tables decides: see `log` for its files. From the moment an entry exists, the writer, or whoever comes next,
publishes all changes of the group (`finish`), or takes all of them back. `reading` gives statements one state of all
tables.
Never here: how a change is computed, and the names of tables.
"""
