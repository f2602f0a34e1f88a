"""The Arrow schema that Spark makes of its own, in each PySpark that we take."""

from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def sparks_arrow_schema(schema: StructType) -> pa.Schema:
    """With times in UTC: PySpark 4.1 has no other, and later versions take the zone."""
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if takes_zone else to_arrow_schema(schema)
