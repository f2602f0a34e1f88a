"""The application: command line, configuration, service, metrics, reports.

It may import every other package, and none of them imports it. What a command does not need it does
not import: `pair` and `sets` are typed at three in the morning and must answer at once.
"""

__version__ = "0.1.0"
