-- The same GTID with different content (E4), searched in the logs of a whole fleet at once.
--
-- A source that crashes may lose its last transactions after its replicas have them, and reuse their
-- GTIDs for others. From then on the sets of both are equal, replication runs, and the rows differ.
-- Only the logs show it. Each transaction of the view `ledgers` is in the log of every server that
-- committed it, so one pass over all of them, grouped by GTID, shows every GTID that was reused.
--
-- Needs a view of the logs, one folder for each server, and digests:
--   register_sources(spark)
--   spark.read.format("mysql_binlog").option("digests", "true") \
--        .option("columns", "path,file,uuid,tag,gno,kind,start,original_commit_at,is_complete,digest,error") \
--        .load("/archive/*/binlog.*").createOrReplaceTempView("ledgers")
--
-- What each answer means:
--   committed at different times   proved: a transaction has one time of its first commit, and every
--                                  server that receives it logs that time (8.0.1 and later)
--   empty on some                  an empty transaction was committed under a GTID that has content
--                                  elsewhere: by hand, by a repair, or by a replica that filters
--   different content              the digests differ and the times do not: compare with
--                                  gtid-audit binlog compare. A replica may log the same work in
--                                  another form (binlog_format, binlog_row_image)

-- 1. Every GTID that differs between logs, with what each log has under it.
SELECT concat(uuid, coalesce(concat(':', tag), ''), ':', gno) AS gtid,
       CASE WHEN count(DISTINCT original_commit_at) > 1 AND NOT bool_or(kind = 'empty')
              THEN 'committed at different times'
            WHEN bool_or(kind = 'empty') AND NOT bool_and(kind = 'empty') THEN 'empty on some'
            WHEN count(DISTINCT original_commit_at) > 1 THEN 'empty, committed at different times'
            ELSE 'different content' END AS why,
       array_sort(collect_set(concat_ws(' ', regexp_extract(path, '([^/]+)/[^/]+$', 1),
         concat(file, ':', start), kind, 'committed', original_commit_at))) AS where_it_is
FROM ledgers
WHERE gno IS NOT NULL AND is_complete
GROUP BY uuid, tag, gno
HAVING count(DISTINCT original_commit_at) > 1 OR count(DISTINCT digest) > 1
ORDER BY uuid, tag NULLS FIRST, gno;

-- 2. Logs that were not read, or not to their end. They may contain more.
SELECT path, start, error FROM ledgers WHERE error IS NOT NULL ORDER BY path;
