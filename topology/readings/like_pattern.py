"""Patterns of LIKE as regular expressions, as replication filters and GRANT have them."""

import re


def like_pattern(wild: str) -> re.Pattern[str]:
    r"""Return a LIKE pattern as a regular expression: `%`, `_`, and `\` before either."""
    parts = []
    escaped = False
    for character in wild:
        if escaped or character not in "\\%_":
            parts.append(re.escape(character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    return re.compile("".join(parts), re.DOTALL)
