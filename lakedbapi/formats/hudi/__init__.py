"""Apache Hudi (table versions 6, 8 and 9), read through hudi-rs and the engine. Rules are those of the technical
specification, https://hudi.apache.org/learn/tech-specs-1point0/."""

from lakedbapi.formats.hudi.open import HudiFormat

__all__ = ["HudiFormat"]
