"""Alert rules, dashboards and runbook for the metrics, made from the catalogue and from tables."""
