"""Text -> typed statements (`lakedbapi.sql.statements`): parameters, time travel, guard."""

from lakedbapi.sql.binding import bind
from lakedbapi.sql.expressions import render
from lakedbapi.sql.foreign import way_out
from lakedbapi.sql.parser import parse
from lakedbapi.sql.queries import only_procedure
from lakedbapi.sql.tokens import split
from lakedbapi.sql.types import type_of

__all__ = ["bind", "only_procedure", "parse", "render", "split", "type_of", "way_out"]
