"""Maintenance: tables get fewer and fuller files, snapshots expire or get names, needless files go. No snapshot sees
other rows."""

from lakedbapi.maintenance.procedures import run as call
from lakedbapi.maintenance.purge import purge
from lakedbapi.maintenance.refs import drop_ref, put_ref
from lakedbapi.maintenance.results import SUCCESS
from lakedbapi.maintenance.statements import checkpoint, optimize, reorg, vacuum

__all__ = ["SUCCESS", "call", "checkpoint", "drop_ref", "optimize", "purge", "put_ref", "reorg", "vacuum"]
