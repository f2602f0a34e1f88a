"""`serve`: audits repeatedly, and offers metrics and health over HTTP."""
