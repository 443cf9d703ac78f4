"""How a server of other readers and writers answers. Imported in the peers' environment: needs pyarrow alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
from spelling import rows_of

Reads: TypeAlias = Mapping[str, Callable[[str], pa.Table]]


def serve(readers: Reads, names: Mapping[str, Any]) -> None:
    """Requests are lines of JSON: `{"read": path}` is answered by `{reader: [row, …] | {"error": text}}` with the
    values as text, `{"run": Python text}`, in which `names` are there, by `{"result": …}` or `{"error": text}`."""
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), readers, names), default=str), flush=True)


def _answer(request: Mapping[str, str], readers: Reads, names: Mapping[str, Any]) -> dict[str, Any]:
    if "read" in request:
        return {name: _tried(lambda read=read: rows_of(read(request["read"]))) for name, read in readers.items()}
    own = dict(names)

    def run() -> dict[str, Any]:
        exec(request["run"], own)
        return {"result": own.get("result")}

    answer: dict[str, Any] = _tried(run)
    return answer


def _tried(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}
