-- The queries of ClickBench, numbered as there. `hits` is `logs` here; where a limit would choose among equal rows, more
-- columns order them. Times are texts in the lines: what computes with them casts them. The format is
-- described in ../queries.py.

-- file: hits

-- query: 0
SELECT COUNT(*) AS n FROM logs

-- query: 1
SELECT COUNT(*) AS n FROM logs WHERE "AdvEngineID" <> 0

-- query: 2
SELECT SUM("AdvEngineID") AS s, COUNT(*) AS n, AVG("ResolutionWidth") AS a FROM logs

-- query: 3
SELECT AVG(CAST("UserID" AS DOUBLE)) AS a FROM logs

-- query: 4
SELECT COUNT(DISTINCT "UserID") AS n FROM logs

-- query: 5
SELECT COUNT(DISTINCT "SearchPhrase") AS n FROM logs

-- query: 6
SELECT MIN("EventDate") AS lo, MAX("EventDate") AS hi FROM logs

-- query: 7
SELECT "AdvEngineID", COUNT(*) AS n FROM logs WHERE "AdvEngineID" <> 0 GROUP BY "AdvEngineID" ORDER BY COUNT(*) DESC

-- query: 8
SELECT "RegionID", COUNT(DISTINCT "UserID") AS u FROM logs GROUP BY "RegionID" ORDER BY u DESC, "RegionID" LIMIT 10

-- query: 9
SELECT "RegionID", SUM("AdvEngineID") AS s, COUNT(*) AS c, AVG("ResolutionWidth") AS a, COUNT(DISTINCT "UserID") AS u FROM logs GROUP BY "RegionID" ORDER BY c DESC, "RegionID" LIMIT 10

-- query: 10
SELECT "MobilePhoneModel", COUNT(DISTINCT "UserID") AS u FROM logs WHERE "MobilePhoneModel" <> '' GROUP BY "MobilePhoneModel" ORDER BY u DESC, "MobilePhoneModel" LIMIT 10

-- query: 11
SELECT "MobilePhone", "MobilePhoneModel", COUNT(DISTINCT "UserID") AS u FROM logs WHERE "MobilePhoneModel" <> '' GROUP BY "MobilePhone", "MobilePhoneModel" ORDER BY u DESC, "MobilePhone", "MobilePhoneModel" LIMIT 10

-- query: 12
SELECT "SearchPhrase", COUNT(*) AS c FROM logs WHERE "SearchPhrase" <> '' GROUP BY "SearchPhrase" ORDER BY c DESC, "SearchPhrase" LIMIT 10

-- query: 13
SELECT "SearchPhrase", COUNT(DISTINCT "UserID") AS u FROM logs WHERE "SearchPhrase" <> '' GROUP BY "SearchPhrase" ORDER BY u DESC, "SearchPhrase" LIMIT 10

-- query: 14
SELECT "SearchEngineID", "SearchPhrase", COUNT(*) AS c FROM logs WHERE "SearchPhrase" <> '' GROUP BY "SearchEngineID", "SearchPhrase" ORDER BY c DESC, "SearchEngineID", "SearchPhrase" LIMIT 10

-- query: 15
SELECT "UserID", COUNT(*) AS c FROM logs GROUP BY "UserID" ORDER BY COUNT(*) DESC, "UserID" LIMIT 10

-- query: 16
SELECT "UserID", "SearchPhrase", COUNT(*) AS c FROM logs GROUP BY "UserID", "SearchPhrase" ORDER BY COUNT(*) DESC, "UserID", "SearchPhrase" LIMIT 10

-- query: 17
SELECT count(*) AS n FROM (SELECT "UserID", "SearchPhrase", COUNT(*) FROM logs GROUP BY "UserID", "SearchPhrase" LIMIT 10)

-- query: 18
SELECT "UserID", extract(minute FROM CAST("EventTime" AS TIMESTAMP)) AS m, "SearchPhrase", COUNT(*) AS c FROM logs GROUP BY "UserID", m, "SearchPhrase" ORDER BY COUNT(*) DESC, "UserID", m, "SearchPhrase" LIMIT 10

-- query: 19
SELECT "UserID" FROM logs WHERE "UserID" = 435090932899640449

-- query: 20
SELECT COUNT(*) AS n FROM logs WHERE "URL" LIKE '%google%'

-- query: 21
SELECT "SearchPhrase", MIN("URL") AS u, COUNT(*) AS c FROM logs WHERE "URL" LIKE '%google%' AND "SearchPhrase" <> '' GROUP BY "SearchPhrase" ORDER BY c DESC, "SearchPhrase" LIMIT 10

-- query: 22
SELECT "SearchPhrase", MIN("URL") AS u, MIN("Title") AS t, COUNT(*) AS c, COUNT(DISTINCT "UserID") AS d FROM logs WHERE "Title" LIKE '%Google%' AND "URL" NOT LIKE '%.google.%' AND "SearchPhrase" <> '' GROUP BY "SearchPhrase" ORDER BY c DESC, "SearchPhrase" LIMIT 10

-- query: 23
SELECT * FROM logs WHERE "URL" LIKE '%google%' ORDER BY "EventTime", "WatchID" LIMIT 10

-- query: 24
SELECT "SearchPhrase" FROM logs WHERE "SearchPhrase" <> '' ORDER BY "EventTime", "WatchID" LIMIT 10

-- query: 25
SELECT "SearchPhrase" FROM logs WHERE "SearchPhrase" <> '' ORDER BY "SearchPhrase" LIMIT 10

-- query: 26
SELECT "SearchPhrase" FROM logs WHERE "SearchPhrase" <> '' ORDER BY "EventTime", "SearchPhrase" LIMIT 10

-- query: 27
SELECT "CounterID", AVG(length("URL")) AS l, COUNT(*) AS c FROM logs WHERE "URL" <> '' GROUP BY "CounterID" HAVING COUNT(*) > 100 ORDER BY l DESC, "CounterID" LIMIT 25

-- query: 28
SELECT regexp_replace("Referer", '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k, AVG(length("Referer")) AS l, COUNT(*) AS c, MIN("Referer") AS r FROM logs WHERE "Referer" <> '' GROUP BY k HAVING COUNT(*) > 100 ORDER BY l DESC, k LIMIT 25

-- query: 29
SELECT SUM("ResolutionWidth") AS a, SUM("ResolutionWidth" + 1) AS b, SUM("ResolutionWidth" + 2) AS c, SUM("ResolutionWidth" + 45) AS d, SUM("ResolutionWidth" + 89) AS e FROM logs

-- query: 30
SELECT "SearchEngineID", "ClientIP", COUNT(*) AS c, SUM("IsRefresh") AS s, AVG("ResolutionWidth") AS a FROM logs WHERE "SearchPhrase" <> '' GROUP BY "SearchEngineID", "ClientIP" ORDER BY c DESC, "SearchEngineID", "ClientIP" LIMIT 10

-- query: 31
SELECT "WatchID", "ClientIP", COUNT(*) AS c, SUM("IsRefresh") AS s, AVG("ResolutionWidth") AS a FROM logs WHERE "SearchPhrase" <> '' GROUP BY "WatchID", "ClientIP" ORDER BY c DESC, "WatchID" LIMIT 10

-- query: 32
SELECT "WatchID", "ClientIP", COUNT(*) AS c, SUM("IsRefresh") AS s, AVG("ResolutionWidth") AS a FROM logs GROUP BY "WatchID", "ClientIP" ORDER BY c DESC, "WatchID" LIMIT 10

-- query: 33
SELECT "URL", COUNT(*) AS c FROM logs GROUP BY "URL" ORDER BY c DESC, "URL" LIMIT 10

-- query: 34
SELECT 1 AS one, "URL", COUNT(*) AS c FROM logs GROUP BY 1, "URL" ORDER BY c DESC, "URL" LIMIT 10

-- query: 35
SELECT "ClientIP", "ClientIP" - 1 AS a, "ClientIP" - 2 AS b, "ClientIP" - 3 AS d, COUNT(*) AS c FROM logs GROUP BY "ClientIP", "ClientIP" - 1, "ClientIP" - 2, "ClientIP" - 3 ORDER BY c DESC, "ClientIP" LIMIT 10

-- query: 36
SELECT "URL", COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "DontCountHits" = 0 AND "IsRefresh" = 0 AND "URL" <> '' GROUP BY "URL" ORDER BY p DESC, "URL" LIMIT 10

-- query: 37
SELECT "Title", COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "DontCountHits" = 0 AND "IsRefresh" = 0 AND "Title" <> '' GROUP BY "Title" ORDER BY p DESC, "Title" LIMIT 10

-- query: 38
SELECT "URL", COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "IsRefresh" = 0 AND "IsLink" <> 0 AND "IsDownload" = 0 GROUP BY "URL" ORDER BY p DESC, "URL" LIMIT 10 OFFSET 20

-- query: 39
SELECT "TraficSourceID", "SearchEngineID", "AdvEngineID", CASE WHEN "SearchEngineID" = 0 AND "AdvEngineID" = 0 THEN "Referer" ELSE '' END AS src, "URL" AS dst, COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "IsRefresh" = 0 GROUP BY "TraficSourceID", "SearchEngineID", "AdvEngineID", src, dst ORDER BY p DESC, 1, 2, 3, src, dst LIMIT 10 OFFSET 100

-- query: 40
SELECT "URLHash", "EventDate", COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "IsRefresh" = 0 AND "TraficSourceID" IN (-1, 6) AND "RefererHash" = 3594120000172545465 GROUP BY "URLHash", "EventDate" ORDER BY p DESC, "URLHash", "EventDate" LIMIT 10 OFFSET 10

-- query: 41
SELECT "WindowClientWidth", "WindowClientHeight", COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-01' AND "EventDate" <= '2013-07-31' AND "IsRefresh" = 0 AND "DontCountHits" = 0 AND "URLHash" = 2868770270353813622 GROUP BY "WindowClientWidth", "WindowClientHeight" ORDER BY p DESC, 1, 2 LIMIT 10 OFFSET 2

-- query: 42
SELECT date_trunc('minute', CAST("EventTime" AS TIMESTAMP)) AS m, COUNT(*) AS p FROM logs WHERE "CounterID" = 62 AND "EventDate" >= '2013-07-14' AND "EventDate" <= '2013-07-15' AND "IsRefresh" = 0 AND "DontCountHits" = 0 GROUP BY m ORDER BY m LIMIT 10 OFFSET 20
