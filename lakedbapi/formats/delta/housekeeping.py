"""What follows a commit: the state after it, checkpoints, and the removal of log files that nobody needs any more.

Nothing of it can fail the commit, whatever it is: the files of a commit that fails are removed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakedbapi.formats.delta.checkpoint_writer import write_checkpoint
from lakedbapi.formats.delta.log_cleanup import clean_log
from lakedbapi.formats.properties import whole_number

if TYPE_CHECKING:
    from lakedbapi.formats.delta.catalog import DeltaCatalog
    from lakedbapi.formats.delta.state import TableState
    from lakedbapi.formats.delta.table import DeltaTable

INTERVAL = 10
"""Commits between checkpoints, unless `delta.checkpointInterval` says otherwise."""

_logger = logging.getLogger("lakedbapi.delta")


def follow(table: DeltaTable, head: TableState, version: int, content: bytes) -> None:
    """Let `table` know what the committed `version` made of `head`. Without, the log is read again."""
    try:
        table.follow(head, version, content)
    except Exception as error:
        _logger.warning("%s: version %s was committed and could not be read: %s", table.root, version, error)


def after_commit(catalog: DeltaCatalog, table: DeltaTable, version: int, configuration: Mapping[str, str]) -> None:
    """Write a checkpoint of the committed `version` if it is its turn. Later readers are slower without, not wrong.

    `configuration` is that of the table since then.
    """
    try:
        interval = whole_number(configuration, "delta.checkpointInterval", INTERVAL)
        if version and interval > 0 and version % interval == 0:
            state = table.at_version(version)
            write_checkpoint(catalog.storage, state)
            clean_log(catalog.storage, table, state)
    except Exception as error:
        _logger.warning("%s: no checkpoint of version %s: %s", table.root, version, error)
