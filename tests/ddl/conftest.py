from tests.dml.conftest import connect, lake
from tests.places import tmp_path

__all__ = ["connect", "lake", "tmp_path"]
