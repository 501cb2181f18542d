"""A table of the shape of ClickBench's `hits`: the columns that its queries name, with few and many values, long texts and blanks.

Takes a generator of random numbers' seed; gives lines of JSON, and the same as a table of DuckDB. The texts are made up.
"""

import json
import random
from datetime import datetime, timedelta

ROWS = 6000
START = datetime(2013, 7, 1)
WORDS = ("car", "map", "weather", "news", "film", "cheap flight", "дом", "купить", "google", "job")
SITES = ("http://example.com/", "https://www.example.org/", "http://maps.example.net/", "http://google.example/")
PHONES = ("", "", "", "", "iPad", "Nexus 5", "S4")
BIGINT, TEXT, TIME = "BIGINT", "VARCHAR", "TIMESTAMP"
TYPES = {
    "WatchID": BIGINT,
    "Title": TEXT,
    "EventTime": TEXT,
    "EventDate": TEXT,
    "CounterID": BIGINT,
    "ClientIP": BIGINT,
    "RegionID": BIGINT,
    "UserID": BIGINT,
    "URL": TEXT,
    "Referer": TEXT,
    "IsRefresh": BIGINT,
    "ResolutionWidth": BIGINT,
    "MobilePhone": BIGINT,
    "MobilePhoneModel": TEXT,
    "TraficSourceID": BIGINT,
    "SearchEngineID": BIGINT,
    "SearchPhrase": TEXT,
    "AdvEngineID": BIGINT,
    "WindowClientWidth": BIGINT,
    "WindowClientHeight": BIGINT,
    "DontCountHits": BIGINT,
    "IsLink": BIGINT,
    "IsDownload": BIGINT,
    "RefererHash": BIGINT,
    "URLHash": BIGINT,
}


def make(database, directory, seed):
    """Writes `hits.ndjson` and makes the table `hits`; gives the path by the name."""
    source = random.Random(seed + 11)
    path = directory / "hits.ndjson"
    lines = [json.dumps(row(source), ensure_ascii=False, separators=(",", ":")) for _ in range(ROWS)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in TYPES.items())
    options = f"columns = {{{columns}}}, format = 'newline_delimited'"
    database.execute(f"CREATE TABLE hits AS SELECT * FROM read_json('{path}', {options})")
    return {"hits": path}


def row(source):
    # The values of a few columns are what ClickBench's queries look for.
    time = START + timedelta(seconds=source.randrange(31 * 86400))
    url = source.choice(SITES) + source.choice(WORDS).replace(" ", "/") + f"?id={source.randrange(400)}"
    phrase = source.choice(WORDS) + f" {source.randrange(40)}" if source.random() < 0.3 else ""
    from_elsewhere = source.random() < 0.6
    return {
        "WatchID": source.getrandbits(63),
        "Title": " ".join(source.choice(WORDS) for _ in range(3)) + source.choice((" - Google", "", "")),
        "EventTime": time.strftime("%Y-%m-%d %H:%M:%S"),
        "EventDate": time.strftime("%Y-%m-%d"),
        "CounterID": source.choice((62, 62, 62, 38, 1704, 225510)),
        "ClientIP": source.randrange(-(1 << 31), 1 << 31) if source.random() < 0.5 else 1234567,
        "RegionID": source.choice((229, 2, 208, 1, 34)),
        "UserID": source.choice((435090932899640449, source.getrandbits(62), source.randrange(300))),
        "URL": url,
        "Referer": source.choice(SITES) + f"r/{source.randrange(50)}" if from_elsewhere else "",
        "IsRefresh": int(source.random() < 0.1),
        "ResolutionWidth": source.choice((1024, 1368, 1638, 1996)),
        "MobilePhone": source.randrange(7),
        "MobilePhoneModel": source.choice(PHONES),
        "TraficSourceID": source.choice((-1, -1, 0, 3, 6)),
        "SearchEngineID": source.choice((0, 0, 2, 3)),
        "SearchPhrase": phrase,
        "AdvEngineID": source.choice((0, 0, 0, 0, 2, 27)),
        "WindowClientWidth": source.choice((-1, 1087, 1297)),
        "WindowClientHeight": source.choice((-1, 583, 804)),
        "DontCountHits": int(source.random() < 0.2),
        "IsLink": int(source.random() < 0.3),
        "IsDownload": int(source.random() < 0.05),
        "RefererHash": source.choice((3594120000172545465, source.getrandbits(63))),
        "URLHash": source.choice((2868770270353813622, source.getrandbits(63))),
    }
