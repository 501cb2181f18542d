"""SQL over log files, as Arrow streams.

    import polars, tailrace

    errors = tailrace.query("SELECT * FROM logs WHERE level = 'ERROR'", "app.log")
    print(polars.DataFrame(errors))

The result is read by everything that knows the Arrow PyCapsule interface: pyarrow, pandas, Polars, DuckDB and others.
"""

from ._tailrace import QueryError, ReadError, Result, __version__, query, schema

__all__ = ["QueryError", "ReadError", "Result", "__version__", "query", "schema"]
