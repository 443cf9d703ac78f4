"""Maintenance: tables get fewer and fuller files, snapshots expire, needless files go. No snapshot sees other rows."""

from lakedbapi.maintenance.procedures import run as call
from lakedbapi.maintenance.purge import purge
from lakedbapi.maintenance.results import SUCCESS
from lakedbapi.maintenance.statements import checkpoint, optimize, reorg, vacuum

__all__ = ["SUCCESS", "call", "checkpoint", "optimize", "purge", "reorg", "vacuum"]
