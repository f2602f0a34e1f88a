"""Problems of single values as text: of a fleet file, and of what a command lists.

No message repeats a value: it may be a password in the wrong field.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from topology.adapters.consumer_source import printable
from topology.adapters.inventory.yaml_places import Path as Place

# The known keys by path, for "did you mean".
Sections: TypeAlias = Mapping[tuple[str, ...], type[BaseModel]]


def path_text(place: Place) -> str:
    """Return the path of a value, as `clusters[0].servers[2].port`; a key may be any text."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return printable(path.lstrip("."))


def problems_of(error: ValidationError, sections: Sections) -> Iterator[tuple[Place, str]]:
    """Yield the problems of a file or an output, each with the path of its value."""
    found = error.errors(include_url=False, include_input=False)
    for each in found:
        place = each["loc"]
        # A list whose items were all refused counts as empty; that is not a separate problem.
        inside = any(other["loc"][: len(place)] == place for other in found if other != each)
        if each["type"] != "too_short" or not inside:
            yield place, _in_words(each, sections)


_WORDS: Final = {
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "missing": "is missing",
    "string_pattern_mismatch": "contains a control character",
    "string_too_short": "is empty",
    "too_short": "is empty",
    "tuple_type": "expected a list",
    "uuid_parsing": "is not a UUID",
    "uuid_type": "is not a UUID",
}


def _in_words(error: Any, sections: Sections) -> str:  # noqa: ANN401 - a dict of Pydantic's
    """Return the problem as text, without the value."""
    place = error["loc"]
    key = str(place[-1]) if place else ""
    if error["type"] == "extra_forbidden":
        section = sections.get(tuple(step for step in place[:-1] if isinstance(step, str)))
        known = sorted(section.model_fields) if section else []
        near = get_close_matches(key, known, n=1)
        return "unknown key; " + (
            f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
        )
    if key == "password" and error["type"] == "model_type":
        return (
            "this file must not contain a password; configure its source: {env: NAME},"
            " {password_file: FILE}, {option_file: FILE, group: NAME} or {login_path: NAME}"
        )
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    text = str(error["msg"])
    return text[:1].lower() + text[1:]
