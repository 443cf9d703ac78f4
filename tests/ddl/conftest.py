from tests.dml.conftest import connect, lake

__all__ = ["connect", "lake"]
