"""Readings, findings and audits as plain records and JSON: their fields are declared here."""
