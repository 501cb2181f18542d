"""Types of the native module."""

import datetime
import os
from collections.abc import Iterable
from typing import Any, Literal, final

__version__: str

_Path = str | os.PathLike[str]
_Type = Literal["text", "int64", "float64", "boolean", "timestamp"]
_Time = str | int | datetime.datetime | datetime.date | datetime.timedelta

class QueryError(ValueError):
    """A query or an argument is not valid."""

    line: int | None
    column: int | None
    hint: str | None

class ReadError(OSError):
    """A file cannot be read, or holds what no query can be run on."""

@final
class Result:
    """The result of a query, which is an Arrow stream."""

    @property
    def notes(self) -> dict[str, int]:
        """What was read so far, by all streams of this result."""

    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

def query(
    sql: str,
    paths: _Path | Iterable[_Path] | None = None,
    *,
    columns: dict[str, _Type] | None = None,
    since: _Time | None = None,
    until: _Time | None = None,
    level: str | int | None = None,
    memory_limit: str | int | None = None,
    threads: int | None = None,
) -> Result:
    """Plans a SQL query over log files."""

def schema(paths: _Path | Iterable[_Path]) -> dict[str, _Type]:
    """The columns that log files have, by all of their records."""
