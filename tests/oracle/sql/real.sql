-- Queries over real log files; a file that is not there is named and left out. The format is described in ../queries.py.

-- file: nginxplus

-- query: times
SELECT timestamp, pid, generation FROM logs

-- query: versions
SELECT nginx_version, version, address, count(*) AS n FROM logs GROUP BY 1, 2, 3

-- query: connections
SELECT CAST(connections->>'accepted' AS BIGINT) AS a, CAST(connections->>'active' AS BIGINT) AS c FROM logs ORDER BY a DESC, c LIMIT 25

-- query: idle
SELECT avg(json_get_int(connections, 'idle')) AS i, max(json_get_int(requests, 'current')) AS c FROM logs
-- duckdb: another name
SELECT avg(CAST(connections->>'idle' AS BIGINT)) AS i, max(CAST(requests->>'current' AS BIGINT)) AS c FROM logs

-- query: zones
SELECT max(json_get_int(server_zones, 'hg.nginx.org', 'responses', '5xx')) AS m, sum(json_get_int(server_zones, 'trac.nginx.org', 'sent')) AS s FROM logs
-- duckdb: another name
SELECT max(CAST(server_zones->'hg.nginx.org'->'responses'->>'5xx' AS BIGINT)) AS m, sum(CAST(server_zones->'trac.nginx.org'->>'sent' AS BIGINT)) AS s FROM logs

-- query: peers
SELECT upstreams->'trac-backend'->'peers'->0->>'state' AS state, count(*) AS n FROM logs GROUP BY 1

-- query: per-minute
SELECT date_trunc('minute', timestamp) AS t, count(*) AS n, min(json_get_int(ssl, 'handshakes')) AS h FROM logs GROUP BY t ORDER BY t
-- duckdb: another name
SELECT date_trunc('minute', timestamp) AS t, count(*) AS n, min(CAST(ssl->>'handshakes' AS BIGINT)) AS h FROM logs GROUP BY t ORDER BY t

-- query: deltas
SELECT timestamp, json_get_int(requests, 'total') - lag(json_get_int(requests, 'total')) OVER (ORDER BY timestamp, json_get_int(requests, 'total')) AS d FROM logs
-- duckdb: another name
SELECT timestamp, CAST(requests->>'total' AS BIGINT) - lag(CAST(requests->>'total' AS BIGINT)) OVER (ORDER BY timestamp, CAST(requests->>'total' AS BIGINT)) AS d FROM logs

-- file: amazon_cellphones

-- query: arrays
SELECT body FROM logs

-- query: brands
SELECT body->>1 AS brand, count(*) AS n FROM logs GROUP BY 1 ORDER BY n DESC, brand LIMIT 10

-- file: Apache_2k

-- query: levels
SELECT regexp_replace(body, '^\[[^\]]*\] \[([a-z]+)\].*$', '\1') AS level, count(*) AS n FROM logs GROUP BY level

-- query: days
SELECT substr(body, 2, 10) AS d, count(*) AS n FROM logs WHERE body LIKE '%[error]%' GROUP BY d ORDER BY n DESC, d

-- query: states
SELECT DISTINCT split_part(body, 'state ', 2) AS s FROM logs WHERE body LIKE '%error state%'

-- file: HDFS_2k

-- query: components
SELECT split_part(body, ' ', 5) AS c, split_part(body, ' ', 4) AS level, count(*) AS n FROM logs GROUP BY 1, 2

-- query: blocks
SELECT count(DISTINCT regexp_replace(body, '^.*(blk_-?[0-9]+).*$', '\1')) AS n FROM logs WHERE body ~ 'blk_'
-- duckdb: `~` matches the whole text there
SELECT count(DISTINCT regexp_replace(body, '^.*(blk_-?[0-9]+).*$', '\1')) AS n FROM logs WHERE regexp_matches(body, 'blk_')

-- file: Hadoop_2k

-- query: all
SELECT * FROM logs

-- query: levels
SELECT split_part(body, ' ', 3) AS level, min(body) AS first, count(*) AS n FROM logs GROUP BY 1

-- query: times
SELECT date_trunc('minute', CAST(replace(substr(body, 1, 23), ',', '.') AS TIMESTAMP)) AS t, count(*) AS n FROM logs WHERE body ~ '^2015-' GROUP BY t
-- duckdb: `~` matches the whole text there
SELECT date_trunc('minute', CAST(replace(substr(body, 1, 23), ',', '.') AS TIMESTAMP)) AS t, count(*) AS n FROM logs WHERE regexp_matches(body, '^2015-') GROUP BY t

-- file: OpenSSH_2k

-- query: addresses
SELECT regexp_replace(body, '^.* from ([0-9.]+).*$', '\1') AS ip, count(*) AS n FROM logs WHERE body LIKE '%Failed password%' GROUP BY ip ORDER BY n DESC, ip LIMIT 5

-- query: users
SELECT count(*) AS n FROM logs WHERE body ILIKE '%INVALID USER%' AND body NOT LIKE '%root%'

-- query: repeats
SELECT body, count(*) AS n FROM logs GROUP BY body HAVING count(*) > 3

-- query: join
SELECT count(*) AS n FROM logs a JOIN logs b ON split_part(a.body, ' ', 3) = split_part(b.body, ' ', 3) AND a.body < b.body AND a.body LIKE '%Invalid%'
