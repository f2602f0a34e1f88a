-- Errant transactions of a whole fleet, by SQL alone, over one stored run of snapshots.
--
-- Needs the functions of docs/sql-functions.md, and a view of the run:
--   register_functions(spark)
--   spark.read.parquet("/srv/gtid/day=2026-01-02/run=20260102T120011.000000Z") \
--        .createOrReplaceTempView("snapshots")
--
-- These are plain set comparisons. The audit (gtid-audit audit --snapshots) does more: it evaluates
-- rings, restarts between the readings, relay logs and allowed UUIDs, and reports its certainty and
-- the strategies. Use this file to explore; act on the audit.

-- 1. Every channel with its source. Every server was read twice. What a replica had in its first
--    reading, and its source not even in its last one, is not a matter of timing.
CREATE OR REPLACE TEMPORARY VIEW edges AS
SELECT replica.cluster, source.name AS source, replica.name AS replica,
       gtid_union(source.gtid_executed, source.gtid_owned) AS at_source
FROM (SELECT cluster, name, explode(channels) AS channel FROM snapshots WHERE phase = 1) AS replica
LEFT JOIN snapshots AS source
  ON source.cluster = replica.cluster AND source.server_uuid = replica.channel.source_uuid
     AND source.phase = 2 AND source.name <> replica.name;

-- 2. Servers about which the sets show nothing: not read, malformed, or with a source outside this run.
--    An aggregate ignores null, so these servers would look as if they had no errant transactions. List
--    them, and exclude them explicitly below.
CREATE OR REPLACE TEMPORARY VIEW unknown AS
SELECT cluster, name,
       CASE WHEN gtid_executed IS NULL THEN 'gtid_executed was not read'
            WHEN gtid_owned IS NULL THEN 'gtid_owned was not read'
            WHEN channels IS NULL THEN 'its channels were not read'
            ELSE coalesce(gtid_error(gtid_executed), gtid_error(gtid_owned)) END AS reason
FROM snapshots
WHERE gtid_canonical(gtid_executed) IS NULL OR gtid_canonical(gtid_owned) IS NULL OR channels IS NULL
UNION
SELECT cluster, replica, 'its source is not among these' FROM edges WHERE source IS NULL;

-- 3. What each replica should have at most: everything that its sources have. Two primaries are each
--    other's source: what only one of them has is on its way, or missing there.
CREATE OR REPLACE TEMPORARY VIEW expected AS
SELECT cluster, replica, gtid_union_agg(at_source) AS at_sources
FROM edges
WHERE NOT EXISTS (SELECT * FROM unknown WHERE unknown.cluster <=> edges.cluster)
GROUP BY cluster, replica;

-- 4. Errant: everything else, with the number of transactions, most first.
SELECT first.cluster, first.name AS replica,
       gtid_subtract(first.gtid_executed, expected.at_sources) AS errant,
       gtid_count(gtid_subtract(first.gtid_executed, expected.at_sources)) AS transactions
FROM snapshots AS first
JOIN expected ON expected.cluster = first.cluster AND expected.replica = first.name
WHERE first.phase = 1
  AND NOT gtid_subset(first.gtid_executed, expected.at_sources)
  AND NOT EXISTS (
    SELECT * FROM edges AS here JOIN edges AS back
      ON back.cluster = here.cluster AND back.source = here.replica AND back.replica = here.source
    WHERE here.cluster = first.cluster AND here.replica = first.name)
ORDER BY transactions DESC, first.cluster, replica;

-- 5. The servers that were excluded.
SELECT cluster, name, reason FROM unknown ORDER BY cluster, name, reason;
