"""Columns that many tests use."""

from __future__ import annotations

from typing import Any

from pyiceberg.transforms import IdentityTransform, Transform
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

ID = NestedField(1, "id", LongType(), required=False)
KEY = NestedField(2, "k", StringType(), required=False)
PART = NestedField(2, "p", IntegerType(), required=False)
DOUBLE = NestedField(2, "d", DoubleType(), required=False)
INT_KEY = NestedField(2, "n", IntegerType(), required=False)
LONG_KEY = NestedField(2, "n", LongType(), required=False)
VALUE = NestedField(3, "v", StringType(), required=False)


def identity() -> Transform[Any, Any]:
    return IdentityTransform()
