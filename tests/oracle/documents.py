"""Documents shaped like those of well-known APIs: tweets, a ticket catalogue, repository events, map outlines, wide metrics.

Takes a generator of random numbers, gives documents with the keys, the nesting and the values that such APIs answer with.
"""

WORDS = (
    "log",
    "agent",
    "ログ",
    "été",
    "naïve",
    "\U0001f600",
    "a\u0301",
    "C:\\temp",
    '"quoted"',
    "https://t.co/AbC?x=1&y=%20",
    "\n",
    "<b>",
    "",
    "\u2028",
    "RT",
    "@user",
    "#tag",
    "日本語テキスト",
    "0",
    "null",
    "\u0000",
    "\u007f",
    "\ufeff",
)


def sentence(source, most=24):
    return " ".join(source.choice(WORDS) for _ in range(source.randint(0, most)))


def moment(source):
    day, clock = f"{source.randint(1, 28):02}", f"{source.randint(0, 23):02}:00:{source.randint(0, 59):02}"
    return f"20{source.randint(10, 29)}-{source.randint(1, 12):02}-{day}T{clock}Z"


def user(source):
    number = source.randint(1, 1 << 62)
    return {
        "id": number,
        "id_str": str(number),
        "name": sentence(source, 3),
        "screen_name": f"user_{number % 10_000}",
        "description": sentence(source),
        "url": source.choice((None, "http://t.co/x")),
        "protected": False,
        "followers_count": source.randint(0, 10**7),
        "utc_offset": source.choice((None, 32400, -28800)),
        "entities": {"description": {"urls": []}},
        "profile_background_color": f"{source.randint(0, 0xFFFFFF):06X}",
    }


def tweet(source, depth=1):
    number = source.randint(1 << 53, 1 << 63)
    document = {
        "metadata": {"result_type": "recent", "iso_language_code": source.choice(("ja", "fr", "en"))},
        "created_at": "Sun Aug 31 00:29:15 +0000 2014",
        "id": number,
        "id_str": str(number),
        "text": sentence(source),
        "truncated": source.random() < 0.5,
        "in_reply_to_status_id": None,
        "user": user(source),
        "geo": source.choice(
            (None, {"type": "Point", "coordinates": [source.uniform(-90, 90), source.uniform(-180, 180)]})
        ),
        "retweet_count": source.randint(0, 10**6),
        "entities": {
            "hashtags": [
                {"text": sentence(source, 1), "indices": [at, at + 5]} for at in range(source.randint(0, 3))
            ],
            "symbols": [],
            "user_mentions": [user(source)] if source.random() < 0.3 else [],
        },
    }
    if depth and source.random() < 0.4:
        document["retweeted_status"] = tweet(source, depth - 1)
    return document


def timeline(source):
    return {
        "statuses": [tweet(source) for _ in range(source.randint(0, 30))],
        "search_metadata": {
            "completed_in": source.random(),
            "max_id": (1 << 63) - 1,
            "count": 100,
            "query": "%E4%B8%80",
        },
    }


def catalogue(source):
    """Objects with numbers for keys, and many small nested lists."""
    ids = [source.randint(10**8, 4 * 10**8) for _ in range(source.randint(1, 60))]
    return {
        "areaNames": {str(number): sentence(source, 2) for number in ids},
        "events": {
            str(number): {
                "description": None,
                "id": number,
                "logo": source.choice((None, "/images/x.jpg")),
                "name": sentence(source, 4),
                "subTopicIds": ids[:3],
                "subjectCode": None,
                "topicIds": [324846099, 107888604],
            }
            for number in ids
        },
        "performances": [
            {
                "eventId": number,
                "id": number + 1,
                "prices": [{"amount": source.randint(0, 300_000), "audienceSubCategoryId": 337100890}],
                "start": source.randint(10**12, 2 * 10**12),
                "seatCategories": [
                    {
                        "areas": [{"areaId": area, "blockIds": []} for area in ids[:4]],
                        "seatCategoryId": number,
                    }
                ],
            }
            for number in ids
        ],
        "seatCategoryNames": {},
        "subTopicNames": {"": "empty key"},
        "venueNames": {"PLEYEL_PLEYEL": "Salle Pleyel"},
    }


def event(source):
    return {
        "type": source.choice(("PushEvent", "CreateEvent", "WatchEvent", "IssuesEvent")),
        "created_at": moment(source),
        "actor": {
            "gravatar_id": f"{source.getrandbits(128):032x}",
            "login": sentence(source, 1),
            "id": source.randint(1, 10**9),
        },
        "repo": {"url": "https://api.github.com/repos/a/b", "id": source.randint(1, 10**9), "name": "a/b"},
        "public": True,
        "payload": {
            "commits": [
                {
                    "sha": f"{source.getrandbits(160):040x}",
                    "message": sentence(source),
                    "distinct": True,
                    "author": {"name": sentence(source, 2), "email": "a@b.c"},
                }
                for _ in range(source.randint(0, 4))
            ],
            "push_id": source.randint(1, 10**12),
            "size": source.randint(0, 20),
            "ref": "refs/heads/\u00e9",
            "issue": source.choice((None, {"labels": [], "assignee": None, "body": sentence(source, 80)})),
        },
        "org": source.choice((None, {"login": "o"})),
        "id": str(source.randint(10**9, 10**10)),
    }


def outline(source):
    """Thousands of doubles, as maps have them."""
    ring = [
        [source.uniform(-180, 180), round(source.uniform(-90, 90), source.randint(0, 17))]
        for _ in range(source.randint(1, 400))
    ]
    return {
        "kind": "FeatureCollection",
        "features": [
            {"properties": {"name": "Canada"}, "geometry": {"kind": "Polygon", "coordinates": [ring]}}
        ],
    }


def numbers(source):
    """Numbers of every size and spelling that Python writes."""
    return {
        f"k{at}": source.choice(
            (
                source.getrandbits(64),
                -source.getrandbits(63),
                source.uniform(-1, 1) * 10.0 ** source.randint(-320, 308),
                source.getrandbits(80),
                0,
                0.0,
                -0.0,
            )
        )
        for at in range(source.randint(1, 700))
    }


def tree(source, depth=40):
    """Nested deeper than OTLP is decoded."""
    if depth == 0 or source.random() < 0.02:
        return sentence(source, 2)
    inner = tree(source, depth - 1)
    return source.choice(({"child": inner, "at": depth}, [inner, depth], {"": inner}, [[], {}, inner]))


KINDS = {
    "twitter": timeline,
    "catalogue": catalogue,
    "events": event,
    "outlines": outline,
    "numbers": numbers,
    "trees": lambda source: {"tree": tree(source)},
}
