-- Queries over the generated shapes, the text of each as a user writes it. The format is described in ../queries.py.

-- file: simple

-- query: all
SELECT * FROM logs

-- query: count
SELECT count(*) AS n FROM logs

-- query: equal
SELECT * FROM logs WHERE level = 'ERROR'

-- query: not-equal
SELECT request_id FROM logs WHERE level <> 'INFO' AND level != 'DEBUG'

-- query: in
SELECT request_id, status FROM logs WHERE level IN ('WARN', 'ERROR') AND status NOT IN (500, 404)

-- query: between
SELECT status, duration_ms FROM logs WHERE status BETWEEN 400 AND 499 AND duration_ms NOT BETWEEN 10 AND 70

-- query: comparisons
SELECT count(*) FILTER (WHERE duration_ms > 10.5) AS gt, count(*) FILTER (WHERE duration_ms >= 10.5) AS ge, count(*) FILTER (WHERE duration_ms < 10.5) AS lt, count(*) FILTER (WHERE duration_ms <= 10.5) AS le, count(*) FILTER (WHERE duration_ms = 10.5) AS eq FROM logs

-- query: int-with-float
SELECT count(*) AS n FROM logs WHERE status > 499.5 AND duration_ms > 1000

-- query: two-columns
SELECT request_id FROM logs WHERE status > duration_ms AND duration_ms > status / 10.0

-- query: nothing
SELECT * FROM logs WHERE level = 'NONE'

-- query: nothing-aggregated
SELECT count(*) AS n, sum(status) AS s, min(message) AS m FROM logs WHERE level = 'NONE'

-- query: nothing-grouped
SELECT level, count(*) AS n FROM logs WHERE 1 = 0 GROUP BY level

-- query: like
SELECT message FROM logs WHERE message LIKE 'GET /api/v1/orders/%7'

-- query: like-inner
SELECT message FROM logs WHERE message LIKE '%/images/%' AND message NOT LIKE 'GET%'

-- query: like-underscore
SELECT count(*) AS n FROM logs WHERE message LIKE '___ /api/v_/%'

-- query: like-escape
SELECT count(*) AS n FROM logs WHERE message LIKE '%\_%' OR request_id LIKE '0%'
-- duckdb: LIKE has no escape unless it is named
SELECT count(*) AS n FROM logs WHERE message LIKE '%\_%' ESCAPE '\' OR request_id LIKE '0%'

-- query: ilike
SELECT count(*) AS n FROM logs WHERE message ILIKE 'delete %BASKETS%'

-- query: regex
SELECT message FROM logs WHERE message ~ '^(PUT|POST) /api/v[0-9]/payments/[0-9]{4}$'
-- duckdb: `~` matches the whole text there
SELECT message FROM logs WHERE regexp_matches(message, '^(PUT|POST) /api/v[0-9]/payments/[0-9]{4}$')

-- query: regex-case
SELECT count(*) AS n FROM logs WHERE message ~* 'ORDERS/1+' AND message !~ '^GET'
-- duckdb: `~` matches the whole text there
SELECT count(*) AS n FROM logs WHERE regexp_matches(message, 'ORDERS/1+', 'i') AND NOT regexp_matches(message, '^GET')

-- query: regexp-like
SELECT count(*) AS n FROM logs WHERE regexp_like(request_id, '^[0-9]+$')
-- duckdb: another name
SELECT count(*) AS n FROM logs WHERE regexp_matches(request_id, '^[0-9]+$')

-- query: regexp-replace
SELECT regexp_replace(message, '[0-9]+$', 'N') AS route, count(*) AS n FROM logs GROUP BY route

-- query: regexp-replace-groups
SELECT DISTINCT regexp_replace(message, '^([A-Z]+) /([a-z]+)/.*$', '\2 \1') AS r FROM logs

-- query: regexp-replace-all
SELECT regexp_replace(message, '[aeiou]', '', 'g') AS r FROM logs WHERE status = 503

-- query: similar
SELECT count(*) AS n FROM logs WHERE message SIMILAR TO '(PUT|POST) /api/v1/%'
-- duckdb: its SIMILAR TO takes a regular expression
SELECT count(*) AS n FROM logs WHERE regexp_full_match(message, '(PUT|POST) /api/v1/.*')

-- query: starts
SELECT count(*) AS n FROM logs WHERE starts_with(message, 'POST') OR ends_with(request_id, 'ff')

-- query: contains
SELECT count(*) AS n FROM logs WHERE contains(message, 'search/results')

-- query: and-or-not
SELECT count(*) AS n FROM logs WHERE NOT (level = 'INFO' OR (status >= 500 AND duration_ms < 2500)) AND (message LIKE 'GET%' OR message LIKE 'PUT%')

-- query: case
SELECT CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'poor' ELSE 'good' END AS class, count(*) AS n, avg(duration_ms) AS ms FROM logs GROUP BY class

-- query: case-of
SELECT CASE level WHEN 'ERROR' THEN 1 WHEN 'WARN' THEN 2 END AS c, count(*) AS n FROM logs GROUP BY 1

-- query: coalesce
SELECT coalesce(nullif(level, 'INFO'), 'usual') AS l, count(*) AS n FROM logs GROUP BY l

-- query: null-logic
SELECT count(*) AS n, count(nullif(level, 'INFO')) AS k FROM logs WHERE nullif(level, 'INFO') = 'WARN' OR nullif(level, 'INFO') IS NULL

-- query: null-not
SELECT count(*) AS n FROM logs WHERE NOT (nullif(status, 200) = 404)

-- query: null-in
SELECT count(*) AS n FROM logs WHERE nullif(status, 200) NOT IN (404, 500)

-- query: null-in-list
SELECT count(*) AS n FROM logs WHERE status NOT IN (404, NULL)

-- query: distinct-from
SELECT count(*) AS n FROM logs WHERE nullif(status, 200) IS DISTINCT FROM 404

-- query: not-distinct-from
SELECT count(*) AS n FROM logs WHERE nullif(status, 200) IS NOT DISTINCT FROM NULL

-- query: truth
SELECT count(*) AS n FROM logs WHERE (nullif(status, 200) > 400) IS NOT TRUE AND (level = 'INFO') IS NOT FALSE

-- query: truth-unknown
SELECT count(*) AS n FROM logs WHERE (nullif(status, 200) > 400) IS UNKNOWN
-- duckdb: IS UNKNOWN is IS NULL
SELECT count(*) AS n FROM logs WHERE (nullif(status, 200) > 400) IS NULL

-- query: casts
SELECT CAST(status AS VARCHAR) AS t, CAST(status AS DOUBLE) / 7 AS f, CAST(status AS SMALLINT) AS s, status::int AS i FROM logs WHERE level = 'WARN'

-- query: cast-text
SELECT CAST(split_part(message, '/', 5) AS BIGINT) AS id FROM logs WHERE message LIKE '%/api/v1/orders/%'

-- query: try-cast
SELECT TRY_CAST(request_id AS BIGINT) AS id, count(*) AS n FROM logs GROUP BY 1 HAVING TRY_CAST(request_id AS BIGINT) IS NOT NULL OR count(*) > 1

-- query: cast-float
SELECT CAST(duration_ms AS DECIMAL(12, 2)) AS d, count(*) AS n FROM logs WHERE status = 500 GROUP BY d

-- query: cast-boolean
SELECT CAST(status - 200 AS BOOLEAN) AS b, count(*) AS n FROM logs GROUP BY b

-- query: arithmetic
SELECT status + 1 AS a, status - 1.5 AS b, status * 2 AS c, -status AS d, status % 7 AS e, status / 3 AS f, duration_ms / 3 AS g FROM logs WHERE level = 'DEBUG'
-- duckdb: integers are divided as integers here
SELECT status + 1 AS a, status - 1.5 AS b, status * 2 AS c, -status AS d, status % 7 AS e, status // 3 AS f, duration_ms / 3 AS g FROM logs WHERE level = 'DEBUG'

-- query: math
SELECT abs(status - 404) AS a, round(duration_ms) AS r, round(duration_ms, 1) AS r1, ceil(duration_ms) AS c, floor(duration_ms) AS f, sqrt(duration_ms) AS s, power(status, 2) AS p, ln(duration_ms + 1) AS l, log10(status) AS lg, exp(-duration_ms) AS e, signum(status - 404) AS g, trunc(duration_ms) AS t FROM logs WHERE status = 404
-- duckdb: another name
SELECT abs(status - 404) AS a, round(duration_ms) AS r, round(duration_ms, 1) AS r1, ceil(duration_ms) AS c, floor(duration_ms) AS f, sqrt(duration_ms) AS s, power(status, 2) AS p, ln(duration_ms + 1) AS l, log10(status) AS lg, exp(-duration_ms) AS e, sign(status - 404) AS g, trunc(duration_ms) AS t FROM logs WHERE status = 404

-- query: trigonometry
SELECT sin(duration_ms) AS s, cos(duration_ms) AS c, tan(duration_ms) AS t, atan(duration_ms) AS a, atan2(duration_ms, status) AS a2, degrees(duration_ms) AS d, radians(status) AS r, pi() AS p FROM logs WHERE status = 400

-- query: bits
SELECT status & 15 AS a, status | 256 AS o, status << 2 AS l, status >> 1 AS r, count(*) AS n FROM logs GROUP BY status

-- query: greatest
SELECT greatest(status, 300, nullif(status, 200)) AS g, least(duration_ms, 40) AS l FROM logs WHERE level = 'INFO'

-- query: texts
SELECT upper(message) AS u, lower(level) AS l, length(message) AS n, substr(message, 3, 4) AS s, "left"(message, 5) AS le, "right"(message, 5) AS ri, reverse(request_id) AS re, replace(message, '/', '.') AS rp, strpos(message, 'v1') AS p FROM logs WHERE status = 401

-- query: texts-more
SELECT lpad(level, 7, '.') AS l, rpad(level, 3, '.') AS r, trim(BOTH 'E' FROM level) AS t, ltrim(level, 'EI') AS lt, rtrim(level, 'GO') AS rt, repeat(level, 2) AS re, concat(level, NULL, status) AS c, concat_ws('-', level, NULL, status) AS w, level || ':' || status AS o, ascii(level) AS a, chr(64 + status % 20) AS ch, translate(level, 'EI', 'ei') AS tr, initcap(level) AS i FROM logs WHERE status IN (503, 201)
-- duckdb: there is no initcap
SELECT lpad(level, 7, '.') AS l, rpad(level, 3, '.') AS r, trim(level, 'E') AS t, ltrim(level, 'EI') AS lt, rtrim(level, 'GO') AS rt, repeat(level, 2) AS re, concat(level, NULL, status) AS c, concat_ws('-', level, NULL, status) AS w, level || ':' || status AS o, ascii(level) AS a, chr(64 + CAST(status % 20 AS INT)) AS ch, translate(level, 'EI', 'ei') AS tr, upper(level[1]) || lower(level[2:]) AS i FROM logs WHERE status IN (503, 201)

-- query: null-text
SELECT count(*) AS n, count(level || nullif(message, message)) AS c FROM logs

-- query: group
SELECT level, count(*) AS n FROM logs GROUP BY level ORDER BY n DESC, level

-- query: group-two
SELECT level, status, count(*) AS n, avg(duration_ms) AS a, min(duration_ms) AS lo, max(duration_ms) AS hi, sum(duration_ms) AS s FROM logs GROUP BY level, status

-- query: group-expression
SELECT status / 100 AS class, max(message) AS m, min(request_id) AS r FROM logs GROUP BY status / 100
-- duckdb: integers are divided as integers here
SELECT status // 100 AS class, max(message) AS m, min(request_id) AS r FROM logs GROUP BY status // 100

-- query: group-many
SELECT request_id, count(*) AS n FROM logs GROUP BY request_id

-- query: having
SELECT status, count(*) AS n FROM logs GROUP BY status HAVING count(*) > 500 AND avg(duration_ms) < 100

-- query: rollup
SELECT level, status, count(*) AS n FROM logs GROUP BY ROLLUP (level, status)

-- query: cube
SELECT level, status >= 400 AS bad, count(*) AS n, grouping(level) AS g FROM logs GROUP BY CUBE (level, status >= 400)
-- duckdb: the expression must be a column
SELECT level, bad, count(*) AS n, grouping(level) AS g FROM (SELECT level, status >= 400 AS bad FROM logs) GROUP BY CUBE (level, bad)

-- query: grouping-sets
SELECT level, status, sum(duration_ms) AS s FROM logs GROUP BY GROUPING SETS ((level), (status), ())

-- query: filter-clause
SELECT level, count(*) FILTER (WHERE status % 2 = 1) AS odd, sum(status) FILTER (WHERE duration_ms < 5) AS s FROM logs GROUP BY level

-- query: distinct
SELECT DISTINCT level, status FROM logs

-- query: distinct-on
SELECT DISTINCT ON (level) level, request_id, duration_ms FROM logs ORDER BY level, duration_ms DESC, request_id

-- query: count-distinct
SELECT count(DISTINCT level) AS l, count(DISTINCT status) AS s, count(DISTINCT message) AS m FROM logs

-- query: count-distinct-group
SELECT level, count(DISTINCT status) AS s, sum(DISTINCT status) AS t FROM logs GROUP BY level

-- query: approx-distinct
SELECT approx_distinct(request_id) AS d FROM logs
-- within: 5 %
-- duckdb: exact
SELECT count(DISTINCT request_id) AS d FROM logs

-- query: statistics
SELECT level, stddev(duration_ms) AS sd, stddev_pop(duration_ms) AS sp, var_samp(duration_ms) AS vs, var_pop(duration_ms) AS vp, corr(duration_ms, status) AS c, covar_samp(duration_ms, status) AS cs, covar_pop(duration_ms, status) AS cp, regr_slope(duration_ms, status) AS rs FROM logs WHERE level IN ('WARN', 'ERROR') GROUP BY level

-- query: bit-aggregates
SELECT level, bit_and(status) AS a, bit_or(status) AS o, bit_xor(status) AS x, bool_and(status < 500) AS ba, bool_or(status > 500) AS bo FROM logs GROUP BY level

-- query: median
SELECT level, median(duration_ms) AS m, median(status) AS s FROM logs GROUP BY level
-- duckdb: the median of integers is an integer here
SELECT level, median(duration_ms) AS m, trunc(median(status)) AS s FROM logs GROUP BY level

-- query: percentile
SELECT level, percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ms) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY duration_ms) AS p99 FROM logs GROUP BY level
-- within: 0.0001 %

-- query: approx-percentile
SELECT level, approx_percentile_cont(duration_ms, 0.9) AS p90 FROM logs GROUP BY level
-- within: 3 %
-- duckdb: exact
SELECT level, quantile_cont(duration_ms, 0.9) AS p90 FROM logs GROUP BY level

-- query: approx-median
SELECT approx_median(duration_ms) AS m FROM logs
-- within: 3 %
-- duckdb: exact
SELECT median(duration_ms) AS m FROM logs

-- query: arrays
SELECT level, array_agg(DISTINCT status ORDER BY status) AS s, string_agg(DISTINCT CAST(status AS VARCHAR), ',' ORDER BY CAST(status AS VARCHAR)) AS t FROM logs GROUP BY level

-- query: first-last
SELECT level, first_value(request_id ORDER BY duration_ms, request_id) AS f, last_value(request_id ORDER BY duration_ms, request_id) AS l FROM logs GROUP BY level
-- duckdb: other names
SELECT level, first(request_id ORDER BY duration_ms, request_id) AS f, last(request_id ORDER BY duration_ms, request_id) AS l FROM logs GROUP BY level

-- query: top
SELECT request_id, duration_ms FROM logs ORDER BY duration_ms DESC, request_id LIMIT 10

-- query: top-offset
SELECT level, status, request_id FROM logs ORDER BY level, status DESC, request_id LIMIT 20 OFFSET 15

-- query: order-nulls
SELECT DISTINCT nullif(status, 200) AS s FROM logs ORDER BY s NULLS FIRST

-- query: order-default-nulls
SELECT DISTINCT nullif(level, 'INFO') AS l FROM logs ORDER BY l DESC

-- query: order-expression
SELECT request_id, status FROM logs WHERE status >= 500 ORDER BY duration_ms * -1, substr(request_id, 2)

-- query: order-group
SELECT status FROM logs GROUP BY status ORDER BY count(*) DESC, status LIMIT 3

-- query: limit-filter
SELECT request_id FROM (SELECT request_id, duration_ms FROM logs WHERE level = 'ERROR' ORDER BY duration_ms, request_id LIMIT 50) WHERE duration_ms > 1

-- query: cte
WITH errors AS (SELECT * FROM logs WHERE level = 'ERROR'), slow AS (SELECT * FROM errors WHERE duration_ms > 1000) SELECT status, count(*) AS n FROM slow GROUP BY status

-- query: cte-twice
WITH by_status AS (SELECT status, count(*) AS n FROM logs GROUP BY status) SELECT a.status, b.status AS other FROM by_status a JOIN by_status b ON a.n < b.n

-- query: recursive
WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 5) SELECT t.i, count(*) AS n FROM t JOIN logs ON logs.status = 400 + t.i GROUP BY t.i

-- query: join
SELECT l.level, r.name, count(*) AS n FROM logs l JOIN 'levels.csv' r ON l.level = r.level GROUP BY l.level, r.name

-- query: left-join
SELECT r.level, count(l.request_id) AS n FROM 'levels.csv' r LEFT JOIN logs l ON l.level = r.level AND l.status <> 200 GROUP BY r.level

-- query: right-join
SELECT r.level, count(l.level) AS n FROM logs l RIGHT JOIN 'levels.csv' r USING (level) GROUP BY r.level

-- query: full-join
SELECT a.status AS a, b.status AS b FROM (SELECT DISTINCT status FROM logs WHERE status < 404) a FULL OUTER JOIN (SELECT DISTINCT status FROM logs WHERE status > 400) b ON a.status = b.status

-- query: cross-join
SELECT l.level, r.rank FROM (SELECT DISTINCT level FROM logs) l CROSS JOIN 'levels.csv' r WHERE r.rank > 9

-- query: self-join
SELECT count(*) AS n FROM logs a JOIN logs b ON a.message = b.message AND a.request_id < b.request_id

-- query: inequality-join
SELECT count(*) AS n FROM (SELECT * FROM logs WHERE status = 503) a JOIN (SELECT * FROM logs WHERE status = 502) b ON a.duration_ms < b.duration_ms

-- query: natural-join
SELECT level, name, count(*) AS n FROM logs NATURAL JOIN 'levels.csv' GROUP BY level, name

-- query: semi
SELECT count(*) AS n FROM logs WHERE level IN (SELECT level FROM 'levels.csv' WHERE rank > 12)

-- query: anti
SELECT count(*) AS n FROM logs l WHERE NOT EXISTS (SELECT 1 FROM 'levels.csv' r WHERE r.level = l.level AND r.rank > 12)

-- query: not-in-null
SELECT count(*) AS n FROM logs WHERE level NOT IN (SELECT nullif(level, 'INFO') FROM logs)

-- query: scalar-subquery
SELECT count(*) AS n FROM logs WHERE duration_ms > (SELECT avg(duration_ms) FROM logs)

-- query: correlated
SELECT count(*) AS n FROM logs a WHERE duration_ms > (SELECT avg(b.duration_ms) FROM logs b WHERE b.level = a.level)

-- query: union
SELECT level FROM logs WHERE status = 503 UNION SELECT name FROM 'levels.csv'

-- query: union-all
SELECT level, 1 AS n FROM logs WHERE status = 503 UNION ALL SELECT level, 2 AS n FROM logs WHERE status = 502

-- query: intersect
SELECT status FROM logs WHERE duration_ms < 1 INTERSECT SELECT status FROM logs WHERE duration_ms > 79

-- query: except
SELECT status FROM logs EXCEPT SELECT status FROM logs WHERE level = 'WARN'

-- query: values
SELECT v.name, count(l.status) AS n FROM (VALUES (500, 'internal'), (503, 'unavailable'), (999, 'none')) AS v(status, name) LEFT JOIN logs l ON l.status = v.status GROUP BY v.name

-- query: row-number
SELECT * FROM (SELECT level, request_id, row_number() OVER (PARTITION BY level ORDER BY duration_ms DESC, request_id) AS r FROM logs) WHERE r <= 3

-- query: ranks
SELECT request_id, rank() OVER w AS r, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS c, ntile(4) OVER (ORDER BY status, request_id) AS t FROM logs WHERE level = 'WARN' WINDOW w AS (PARTITION BY level ORDER BY status)

-- query: lag-lead
SELECT request_id, lag(status) OVER w AS a, lag(status, 2, 0) OVER w AS b, lead(status) OVER w AS c FROM logs WHERE level = 'ERROR' WINDOW w AS (ORDER BY timestamp, request_id)

-- query: running
SELECT request_id, sum(status) OVER (ORDER BY request_id) AS s, avg(duration_ms) OVER (ORDER BY request_id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS a, count(*) OVER (PARTITION BY status) AS n FROM logs WHERE level = 'ERROR'

-- query: range-frame
SELECT request_id, count(*) OVER (ORDER BY status RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS n FROM logs WHERE level = 'WARN'

-- query: first-in-window
SELECT request_id, first_value(request_id) OVER w AS f, last_value(request_id) OVER w AS l, nth_value(request_id, 2) OVER w AS s FROM logs WHERE status = 500 WINDOW w AS (PARTITION BY level ORDER BY duration_ms, request_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)

-- query: qualify
SELECT level, request_id FROM logs QUALIFY row_number() OVER (PARTITION BY level ORDER BY request_id) = 1

-- query: window-of-group
SELECT level, count(*) AS n, sum(count(*)) OVER (ORDER BY level) AS s FROM logs GROUP BY level

-- query: exclude
SELECT * EXCLUDE (request_id, message) FROM logs WHERE status = 502

-- query: replace
SELECT * REPLACE (status / 100 AS status) FROM logs WHERE status > 500
-- duckdb: integers are divided as integers here
SELECT * REPLACE (status // 100 AS status) FROM logs WHERE status > 500

-- query: time-compare
SELECT count(*) AS n FROM logs WHERE timestamp >= '2026-01-02T03:04:10Z' AND timestamp < TIMESTAMP '2026-01-02 03:04:20'
-- duckdb: the table's times are without a zone there
SELECT count(*) AS n FROM logs WHERE timestamp >= '2026-01-02T03:04:10' AND timestamp < TIMESTAMP '2026-01-02 03:04:20'

-- query: time-trunc
SELECT date_trunc('second', timestamp) AS t, count(*) AS n FROM logs GROUP BY t ORDER BY t

-- query: time-trunc-day
SELECT date_trunc('day', timestamp) AS d, date_trunc('month', timestamp) AS m, date_trunc('year', timestamp) AS y, count(*) AS n FROM logs GROUP BY d, m, y

-- query: time-bin
SELECT date_bin(INTERVAL '15 seconds', timestamp) AS t, count(*) AS n FROM logs GROUP BY t
-- duckdb: another name
SELECT time_bucket(INTERVAL '15 seconds', timestamp, TIMESTAMP '1970-01-01') AS t, count(*) AS n FROM logs GROUP BY t

-- query: time-parts
SELECT date_part('year', timestamp) AS y, date_part('month', timestamp) AS mo, date_part('day', timestamp) AS d, date_part('hour', timestamp) AS h, date_part('minute', timestamp) AS m, date_part('dow', timestamp) AS w, date_part('doy', timestamp) AS j, date_part('quarter', timestamp) AS q, date_part('week', timestamp) AS k, count(*) AS n FROM logs GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9

-- query: time-extract
SELECT extract(second FROM timestamp) AS s, count(*) AS n FROM logs GROUP BY s
-- duckdb: whole seconds
SELECT extract(second FROM timestamp) AS s, count(*) AS n FROM logs GROUP BY s

-- query: time-epoch
SELECT extract(epoch FROM timestamp) AS s FROM logs WHERE status = 503

-- query: time-arithmetic
SELECT timestamp + INTERVAL '1 hour 30 minutes' AS a, timestamp - INTERVAL '1 day' AS b, timestamp + INTERVAL '1 month' AS c FROM logs WHERE status = 500

-- query: time-text
SELECT to_char(timestamp, '%Y/%m/%d %H:%M') AS t, count(*) AS n FROM logs GROUP BY t
-- duckdb: another name
SELECT strftime(timestamp, '%Y/%m/%d %H:%M') AS t, count(*) AS n FROM logs GROUP BY t

-- query: time-cast
SELECT CAST(timestamp AS DATE) AS d, CAST('2026-01-02' AS DATE) = CAST(timestamp AS DATE) AS same, count(*) AS n FROM logs GROUP BY d

-- query: time-between
SELECT min(timestamp) AS lo, max(timestamp) AS hi, count(*) AS n FROM logs WHERE timestamp BETWEEN '2026-01-02T03:04:06Z' AND '2026-01-02T03:04:07.5Z'
-- duckdb: the table's times are without a zone there
SELECT min(timestamp) AS lo, max(timestamp) AS hi, count(*) AS n FROM logs WHERE timestamp BETWEEN '2026-01-02T03:04:06' AND '2026-01-02T03:04:07.5'

-- query: time-difference
SELECT extract(epoch FROM max(timestamp)) - extract(epoch FROM min(timestamp)) AS s FROM logs

-- query: time-literal
SELECT count(*) AS n FROM logs WHERE timestamp > to_timestamp(1767323050)

-- query: unnest
SELECT u.part, count(*) AS n FROM (SELECT unnest(string_to_array(message, '/')) AS part FROM logs WHERE status >= 500) u WHERE u.part NOT LIKE '%0%' GROUP BY u.part
-- duckdb: another name
SELECT u.part, count(*) AS n FROM (SELECT unnest(string_split(message, '/')) AS part FROM logs WHERE status >= 500) u WHERE u.part NOT LIKE '%0%' GROUP BY u.part

-- query: severity
SELECT severity_text, severity_number, count(*) AS n FROM logs WHERE severity_number >= 13 GROUP BY severity_text, severity_number
-- duckdb: by the rules of docs/otlp-mapping.md
SELECT level AS severity_text, CASE level WHEN 'WARN' THEN 13 ELSE 17 END AS severity_number, count(*) AS n FROM logs WHERE level IN ('WARN', 'ERROR') GROUP BY level

-- query: body
SELECT body, malformed, truncated, "log.file.name" FROM logs WHERE status = 503
-- duckdb: by the rules of docs/sql.md
SELECT message AS body, false AS malformed, false AS truncated, 'simple.ndjson' AS "log.file.name" FROM logs WHERE status = 503

-- query: whole-record
SELECT json->>'status' AS s, count(*) AS n FROM logs WHERE json->>'level' = 'WARN' GROUP BY s
-- duckdb: by the rules of docs/sql.md
SELECT CAST(status AS VARCHAR) AS s, count(*) AS n FROM logs WHERE level = 'WARN' GROUP BY status

-- query: file-name
SELECT count(*) AS n FROM 'simple.ndjson' WHERE level = 'ERROR'
-- duckdb: the same lines
SELECT count(*) AS n FROM logs WHERE level = 'ERROR'

-- query: two-files
SELECT a.level, count(*) AS n FROM 'simple.ndjson' a JOIN 'narrow.ndjson' b ON a.level = b.level AND a.status = 503 GROUP BY a.level
-- duckdb: the same lines
SELECT a.level, count(*) AS n FROM simple a JOIN narrow b ON a.level = b.level AND a.status = 503 GROUP BY a.level

-- query: compressed
SELECT level, count(*) AS n, sum(status) AS s FROM 'simple.ndjson.gz' GROUP BY level
-- duckdb: the same lines
SELECT level, count(*) AS n, sum(status) AS s FROM logs GROUP BY level

-- file: narrow

-- query: all
SELECT * FROM logs

-- query: top-words
SELECT msg, level, count(*) AS n FROM logs GROUP BY msg, level ORDER BY n DESC, msg, level LIMIT 5

-- query: time-key
SELECT ts, CAST(ts AS TIMESTAMP) AS t FROM logs WHERE msg = 'retry' AND level = 'ERROR'

-- query: time-reserved
SELECT date_trunc('second', timestamp) AS t, count(*) AS n FROM logs GROUP BY t
-- duckdb: the reserved column is the key's time
SELECT date_trunc('second', CAST(ts AS TIMESTAMP)) AS t, count(*) AS n FROM logs GROUP BY t

-- query: text-order
SELECT min(ts) AS lo, max(ts) AS hi, count(DISTINCT ts) AS n FROM logs

-- file: wide

-- query: all
SELECT * FROM logs WHERE status >= 500

-- query: group-two
SELECT service, region, count(*) AS n, avg(duration_ms) AS a, sum(bytes_out) AS b FROM logs GROUP BY service, region

-- query: top-bytes
SELECT client_ip, sum(bytes_in + bytes_out) AS bytes FROM logs GROUP BY client_ip ORDER BY bytes DESC, client_ip LIMIT 10

-- query: two-of-twenty
SELECT trace_id, bytes_out FROM logs WHERE bytes_out > 490000 AND method = 'POST'

-- query: error-rate
SELECT service, round(100.0 * sum(CASE WHEN status >= 500 THEN 1 ELSE 0 END) / count(*), 3) AS rate FROM logs GROUP BY service ORDER BY rate DESC, service

-- query: percentiles
SELECT service, percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95, percentile_cont(0.25) WITHIN GROUP (ORDER BY bytes_out) AS q FROM logs GROUP BY service
-- within: 0.0001 %

-- query: routes
SELECT regexp_replace(path, '[0-9]+$', ':id') AS route, method, count(*) AS n, max(duration_ms) AS slowest FROM logs GROUP BY route, method ORDER BY n DESC, route, method LIMIT 7

-- query: windows
SELECT service, trace_id, bytes_out - avg(bytes_out) OVER (PARTITION BY service) AS d FROM logs WHERE level = 'ERROR'

-- query: share
SELECT service, count(*) * 1.0 / sum(count(*)) OVER () AS share FROM logs GROUP BY service

-- query: users
SELECT count(DISTINCT user_id) AS u, count(DISTINCT client_ip) AS i, count(DISTINCT host) AS h FROM logs WHERE region = 'eu-west-1'

-- query: join-services
SELECT s.team, count(*) AS n, sum(l.bytes_out) AS b FROM logs l JOIN 'services.csv' s ON l.service = s.service WHERE l.status < 500 GROUP BY s.team

-- query: anti-join-services
SELECT DISTINCT l.service FROM logs l LEFT JOIN 'services.csv' s ON l.service = s.service WHERE s.service IS NULL

-- query: text-functions
SELECT split_part(client_ip, '.', 3) AS net, split_part(pod, '-', -1) AS p, char_length(user_id) AS n, count(*) AS c FROM logs WHERE namespace = 'billing' GROUP BY 1, 2, 3

-- query: many-conditions
SELECT count(*) AS n FROM logs WHERE level IN ('ERROR', 'WARN') AND service LIKE 'c%' AND region <> 'us-east-1' AND status BETWEEN 400 AND 599 AND (bytes_in > 100 OR bytes_out > 1000) AND version ~ '^2\.1[45]'
-- duckdb: `~` matches the whole text there
SELECT count(*) AS n FROM logs WHERE level IN ('ERROR', 'WARN') AND service LIKE 'c%' AND region <> 'us-east-1' AND status BETWEEN 400 AND 599 AND (bytes_in > 100 OR bytes_out > 1000) AND regexp_matches(version, '^2\.1[45]')

-- query: histogram
SELECT CAST(floor(log10(duration_ms + 0.001)) AS INT) AS bucket, count(*) AS n FROM logs GROUP BY bucket ORDER BY bucket

-- query: sessions
SELECT count(*) AS n FROM (SELECT service, timestamp, lag(timestamp) OVER (PARTITION BY service ORDER BY timestamp, trace_id) AS before FROM logs) WHERE timestamp > before + INTERVAL '8 milliseconds'

-- file: demo

-- query: all
SELECT * FROM logs

-- query: accounting
SELECT stream, count(*) AS n, min(seq) AS lo, max(seq) AS hi, count(DISTINCT seq) AS d FROM logs GROUP BY stream

-- query: gaps
SELECT count(*) AS n FROM (SELECT seq, lead(seq) OVER (ORDER BY seq) AS next FROM logs) WHERE next <> seq + 1

-- query: every-hundredth
SELECT seq, msg FROM logs WHERE seq % 100 = 7 ORDER BY seq

-- file: mixed

-- query: all
SELECT * FROM logs

-- query: absent
SELECT count(*) AS n, count(level) AS l, count(message) AS m, count(msg) AS s, count(pid) AS p, count("service.name") AS sn, count(ok) AS ok FROM logs

-- query: not-equal-absent
SELECT count(*) AS n FROM logs WHERE pid <> 7

-- query: kinds-of-level
SELECT level, count(*) AS n FROM logs GROUP BY level

-- query: numeric-text
SELECT count(*) AS n FROM logs WHERE level = '30'

-- query: text-as-number
SELECT count(*) AS n FROM logs WHERE TRY_CAST(level AS BIGINT) >= 40

-- query: huge
SELECT total, count(*) AS n FROM logs GROUP BY total

-- query: fractions
SELECT ratio, count(*) AS n FROM logs WHERE ratio < 1 GROUP BY ratio

-- query: kinds-of-code
SELECT code, count(*) AS n, sum(CAST(code AS BIGINT)) AS s FROM logs GROUP BY code

-- query: booleans
SELECT paid, ok, count(*) AS n FROM logs GROUP BY paid, ok

-- query: boolean-condition
SELECT count(*) AS n FROM logs WHERE NOT paid OR ok

-- query: always-null
SELECT count(note) AS n, count(*) AS c FROM logs WHERE note IS NULL AND paid IS NOT NULL

-- query: unicode
SELECT msg, length(msg) AS n, upper(msg) AS u, reverse("left"(msg, 3)) AS r FROM logs WHERE msg LIKE '%é%' OR msg LIKE '日%'

-- query: unicode-key
SELECT "città", count(*) AS n, max(length("città")) AS l FROM logs GROUP BY "città"

-- query: escaped-key
SELECT "the ""quoted"" key", count(*) AS n FROM logs GROUP BY 1

-- query: escaped-text
SELECT msg, file, sql FROM logs WHERE file LIKE 'C:\\Program%' OR msg LIKE '\\\\server%'
-- duckdb: a backslash is no escape in LIKE there
SELECT msg, file, sql FROM logs WHERE starts_with(file, 'C:\Program') OR starts_with(msg, '\\server')

-- query: nul
SELECT count(*) AS n FROM logs WHERE msg = 'tab	here, nul' || chr(0) || 'there'

-- query: object-text
SELECT http->>'method' AS m, CAST(http->>'status' AS BIGINT) AS s, count(*) AS n FROM logs WHERE http IS NOT NULL GROUP BY 1, 2

-- query: json-functions
SELECT json_get_str(http, 'method') AS m, json_get_int(http, 'status') AS s, json_get_str(http, 'headers', 'accept') AS a FROM logs
-- duckdb: other names
SELECT http->>'method' AS m, CAST(http->>'status' AS BIGINT) AS s, http->>'$.headers.accept' AS a FROM logs

-- query: time-of-any-key
SELECT date_trunc('second', timestamp) AS t, count(*) AS n FROM logs GROUP BY t

-- query: stack-traces
SELECT exception->>'type' AS t, max(length(exception->>'stacktrace')) AS l, count(*) AS n FROM logs WHERE thread LIKE '%-1_' GROUP BY 1

-- file: nested

-- query: all
SELECT * FROM logs

-- query: path
SELECT http->'headers'->>'user-agent' AS a, count(*) AS n FROM logs GROUP BY 1

-- query: path-number
SELECT count(*) AS n FROM logs WHERE json_get_int(http, 'status') >= 500
-- duckdb: another name
SELECT count(*) AS n FROM logs WHERE CAST(http->>'status' AS BIGINT) >= 500

-- query: array-element
SELECT tags->>0 AS first, tags->>2 AS third, count(*) AS n FROM logs GROUP BY 1, 2

-- query: array-deep
SELECT items->0->>'sku' AS sku, json_get_int(items, 0, 'count') AS c, json_get_float(items, 0, 'sizes', 2, 0, 'w') AS w FROM logs WHERE items IS NOT NULL
-- duckdb: other names
SELECT items->0->>'sku' AS sku, CAST(items->'$[0].count' AS BIGINT) AS c, CAST(items->'$[0].sizes[2][0].w' AS DOUBLE) AS w FROM logs WHERE items IS NOT NULL

-- query: array-length
SELECT json_length(items) AS n, json_length(tags) AS t, count(*) AS c FROM logs GROUP BY 1, 2
-- duckdb: another name, and NULL where there is none
SELECT json_array_length(items) AS n, json_array_length(tags) AS t, count(*) AS c FROM logs GROUP BY 1, 2

-- query: contains
SELECT json_contains(http, 'headers', 'accept') AS c, json_contains("user", 'id') AS u, count(*) AS n FROM logs GROUP BY 1, 2
-- duckdb: another name, NULL where there is no object
SELECT coalesce(json_exists(http, '$.headers.accept'), false) AS c, CASE WHEN "user" LIKE '{%' THEN json_exists("user", '$.id') ELSE false END AS u, count(*) AS n FROM logs GROUP BY 1, 2

-- query: kinds-of-user
SELECT CASE WHEN "user" IS NULL THEN 'none' WHEN "user" LIKE '{%' THEN 'object' ELSE 'text' END AS k, count(*) AS n FROM logs WHERE http IS NOT NULL GROUP BY k

-- query: null-in-object
SELECT meta, meta->'a'->'b'->>'c' AS c, count(*) AS n FROM logs GROUP BY 1, 2

-- query: objects-as-text
SELECT http FROM logs WHERE http LIKE '%curl%' ORDER BY http LIMIT 20

-- query: group-by-object
SELECT tags, count(*) AS n FROM logs GROUP BY tags HAVING count(*) > 1

-- query: nested-regex
SELECT count(*) AS n FROM logs WHERE (http->>'path') ~ '/orders/[0-9]{3}$'
-- duckdb: `~` matches the whole text there
SELECT count(*) AS n FROM logs WHERE regexp_matches(http->>'path', '/orders/[0-9]{3}$')

-- file: escaped

-- query: all
SELECT * FROM logs

-- query: line-feeds
SELECT count(*) AS n, max(length(exception->>'stacktrace') - length(replace(exception->>'stacktrace', chr(10), ''))) AS lines FROM logs WHERE exception IS NOT NULL

-- query: quotes
SELECT exception->>'message' AS m, count(*) AS n FROM logs GROUP BY 1

-- query: paths
SELECT split_part(file, '\', 3) AS p, count(*) AS n FROM logs GROUP BY 1

-- file: cri

-- query: all
SELECT * FROM logs

-- query: streams
SELECT "log.iostream" AS s, count(*) AS n, avg(duration_ms) AS a FROM logs GROUP BY 1
-- duckdb: the stream of the container's runtime
SELECT stream AS s, count(*) AS n, avg(duration_ms) AS a FROM cri_streams GROUP BY 1

-- query: errors
SELECT request_id, message FROM logs WHERE level = 'ERROR' AND status = 500

-- query: group
SELECT level, status, count(*) AS n FROM logs GROUP BY level, status ORDER BY n DESC, level, status

-- file: text

-- query: all
SELECT * FROM logs

-- query: words
SELECT split_part(body, ' ', 2) AS level, count(*) AS n FROM logs GROUP BY 1

-- query: like
SELECT body FROM logs WHERE body LIKE '% ERROR %status=503'

-- query: captured
SELECT substr(body, strpos(body, 'status=') + 7)::bigint AS status, count(*) AS n FROM logs GROUP BY 1
