"""What DuckDB tells of an error of Python that met it, as the versions of Python print it."""

from __future__ import annotations

import duckdb
import pytest

from lakedbapi.engine.duckdb.errors import translate
from lakedbapi.errors import OperationalError

BEFORE_3_12 = """Traceback (most recent call last):
  File "/python/s3fs/core.py", line 216, in _error_wrapper
PermissionError: Access Denied"""
SINCE_3_12 = """Traceback (most recent call last):

  File "/python/aiobotocore/client.py", line 449, in _make_api_call
    raise error_class(parsed_response, operation_name)

botocore.errorfactory.AccessDenied: An error occurred


The above exception was the direct cause of the following exception:


Traceback (most recent call last):

  File "/python/s3fs/core.py", line 2641, in _call_s3
    return self.fs.call_s3(
           ~~~~~~~~~~~~~~~^
        method,
    ...<3 lines>...
    )
    ^

  File "/python/s3fs/core.py", line 216, in _error_wrapper
    raise err

PermissionError: Access Denied
"""


@pytest.mark.parametrize("text", [BEFORE_3_12, SINCE_3_12], ids=["before 3.12", "since 3.12"])
def test_an_error_of_a_filesystem_is_told_without_the_way_to_it(text: str) -> None:
    error = translate(duckdb.Error(text))
    assert isinstance(error, OperationalError)
    assert str(error) == "PermissionError: Access Denied"
