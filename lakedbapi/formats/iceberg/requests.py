"""pyiceberg's models of updates, requirements and snapshots, which take names of fields that mypy does not see."""

from __future__ import annotations

from typing import Any

import pyiceberg.table.snapshots
import pyiceberg.table.update

updates: Any = pyiceberg.table.update
snapshots: Any = pyiceberg.table.snapshots
