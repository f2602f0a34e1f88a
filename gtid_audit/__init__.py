"""The application: command line, configuration, service, metrics, reports.

It may import every other package; no other package imports it. A command imports only what it
needs: operators type `pair` and `sets` during an incident, and must get an answer at once.
"""

__version__ = "0.1.0"
