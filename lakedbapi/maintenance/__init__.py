"""Maintenance: tables get fewer and fuller files, snapshots expire, needless files go. No snapshot sees other rows."""

from lakedbapi.maintenance.procedures import run as call
from lakedbapi.maintenance.purge import purge

__all__ = ["call", "purge"]
