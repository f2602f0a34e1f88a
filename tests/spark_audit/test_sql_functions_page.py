"""docs/sql-functions.md says what is: its examples are run in order, and give what it shows."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit.functions import gtid_functions

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).resolve().parents[2] / "docs/sql-functions.md").read_text()
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"\bgtid_\w+(?=\()")


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    assert isinstance(value, str | int | Decimal)
    return str(value)


def test_the_examples_of_the_page_are_true(spark: SparkSession) -> None:
    session = spark.newSession()
    names: dict[str, Any] = {"spark": session}
    answer = None
    compared = 0
    for block in BLOCK.finditer(PAGE):
        body = block["body"]
        match block["language"]:
            case "python":
                exec(compile(body, "docs/sql-functions.md", "exec"), names)
            case "sql":
                rows = session.sql(body).collect()
                answer = "".join(" | ".join(map(shown, row)) + "\n" for row in rows)
            case "":
                assert answer == body, block.start()
                compared += 1
            case other:
                raise AssertionError(f"nothing runs {other}")
    assert compared == len(re.findall(r"^SELECT ", PAGE, re.MULTILINE))
    session.catalog.dropTempView("pairs")


def test_the_page_tells_of_every_function_with_an_example() -> None:
    examples = "".join(block["body"] for block in BLOCK.finditer(PAGE) if block["language"])
    exampled = set(FUNCTION.findall(examples)) - {"gtid_functions"}
    assert exampled == set(gtid_functions().__dataclass_fields__)
    assert exampled <= set(FUNCTION.findall(re.sub(BLOCK, "", PAGE)))
