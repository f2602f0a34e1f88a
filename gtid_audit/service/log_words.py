"""The forms and the levels of the log. It imports nothing: the command line needs both."""

from enum import Enum


class LogFormat(Enum):
    """The form of the lines."""

    JSON = "json"
    TEXT = "text"


class LogLevel(Enum):
    """How severe an event is, the least severe first. Findings have that of their severity."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
