"""Views: their metadata as `ViewInfo`, and a transaction's changes of them as commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.view.metadata import SQLViewRepresentation, ViewMetadata, ViewRepresentation, ViewVersion

from lakedbapi.errors import DataError, NotSupportedError
from lakedbapi.formats.iceberg.definition import view_schema
from lakedbapi.formats.iceberg.sources import CatalogSource, Namespace
from lakedbapi.formats.iceberg.view_requests import ViewClient, conflict
from lakedbapi.model.catalog import CATALOG_PLACEHOLDER, SchemaInfo, ViewInfo

_COMMENT = "comment"
_DIALECT = "duckdb"
_NAMED_BY_QUERY = "lakedbapi.columns-named-by-query"
"""In the summary of a version: its columns have no names but those of its query, which may be `*`, and get more."""
_LAST_ADDED = -1


def view_info(id: int, schema: SchemaInfo, name: str, metadata: ViewMetadata) -> ViewInfo:
    """The text in the engine's SQL, else any. Columns are called as in the schema (spec, View Version)."""
    version = _found(metadata.versions, "version-id", metadata.current_version_id, name)
    texts = {r.root.dialect: r.root.sql for r in version.representations}
    if not texts:
        raise DataError(f"the metadata of view {name} has no text")
    dialect = next((known for known in texts if known.casefold() == _DIALECT), next(iter(texts)))
    columns = _found(metadata.schemas, "schema-id", version.schema_id, name)
    aliases = () if version.summary.get(_NAMED_BY_QUERY) == "true" else tuple(f.name for f in columns.fields)
    home = version.default_catalog, ".".join(version.default_namespace) or schema.name
    return ViewInfo(
        id,
        schema.id,
        name,
        texts[dialect],
        dialect,
        column_aliases=aliases,
        comment=metadata.properties.get(_COMMENT),
        home=None if home == (None, schema.name) else home,
    )


def _found(items: list[Any], key: str, id: int, name: str) -> Any:
    for item in items:
        if getattr(item, key.replace("-", "_")) == id:
            return item
    raise DataError(f"the metadata of view {name} has no {key} {id}, which it names")


@dataclass(frozen=True)
class ViewPlan:
    """`old` and `base`: the view as the transaction found it, None for a new one. `new`: None for one that goes."""

    namespace: Namespace
    old: ViewInfo | None
    base: ViewMetadata | None
    new: ViewInfo | None

    @property
    def view(self) -> ViewInfo:
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def name(self) -> str:
        return ".".join((*self.namespace, self.view.name))


def joined(plans: list[ViewPlan]) -> list[ViewPlan]:
    """The drop of a view and the creation of another one of its name, whatever its case, are one plan."""
    found: dict[str, ViewPlan] = {}
    for plan in plans:
        key = plan.name.casefold()
        found[key] = _replacing(found[key], plan) if key in found else plan
    return list(found.values())


def _replacing(one: ViewPlan, other: ViewPlan) -> ViewPlan:
    dropped, created = (one, other) if one.new is None else (other, one)
    assert dropped.old is not None
    assert created.new is not None
    return replace(dropped, new=replace(created.new, name=dropped.old.name))


def commit_view(source: CatalogSource, plan: ViewPlan) -> None:
    assert isinstance(source.client, RestCatalog)
    client = ViewClient(source.name, source.client)
    if plan.old is None or plan.base is None:
        assert plan.new is not None
        source.ensure_namespace(plan.namespace)
        properties = {} if plan.new.comment is None else {_COMMENT: plan.new.comment}
        version = _version(plan.namespace, plan.new, 1, 0)
        client.create((*plan.namespace, plan.new.name), view_schema(plan.new), version, properties)
        return
    identifier = (*plan.namespace, plan.old.name)
    _check_unchanged(source, identifier, plan.base)
    if plan.new is None:
        client.drop(identifier)
        return
    updates = list(_updates(plan.namespace, plan.base, plan.old, plan.new))
    if updates and plan.new.name != plan.old.name:
        raise NotSupportedError(f"view {plan.name} cannot be renamed and changed in one transaction: commit in between")
    if updates:
        current = client.change(identifier, plan.base.view_uuid, updates)
        _check_alone(client, identifier, plan.base, current)
    elif plan.new.name != plan.old.name:
        client.rename(identifier, (*plan.namespace, plan.new.name))


def _check_unchanged(source: CatalogSource, identifier: tuple[str, ...], base: ViewMetadata) -> None:
    now = source.load_view(identifier[:-1], identifier[-1])
    if now is None or now.view_uuid != base.view_uuid:
        raise conflict(".".join(identifier), "another one dropped it")
    if now.current_version_id != base.current_version_id:
        raise conflict(".".join(identifier), "another one replaced it")


def _check_alone(client: ViewClient, identifier: tuple[str, ...], base: ViewMetadata, current: list[int]) -> None:
    """Requests cannot require a version of a view. What another one put in the place of `base` just before this change
    comes back, and this one is a conflict."""
    if base.current_version_id in current[-2:]:
        return
    if len(current) > 1:
        client.change(
            identifier, base.view_uuid, [{"action": "set-current-view-version", "view-version-id": current[-2]}]
        )
    raise conflict(".".join(identifier), "another one replaced it")


def _updates(namespace: Namespace, base: ViewMetadata, old: ViewInfo, new: ViewInfo) -> Iterator[dict[str, Any]]:
    """Of a view that is replaced (which has an id of its own) or gets another comment."""
    if new.id != old.id:
        number = max(version.version_id for version in base.versions) + 1
        version = _version(namespace, new, number, _LAST_ADDED)
        yield {"action": "add-schema", "schema": view_schema(new).model_dump(mode="json", by_alias=True)}
        yield {"action": "add-view-version", "view-version": version.model_dump(mode="json", by_alias=True)}
        yield {"action": "set-current-view-version", "view-version-id": _LAST_ADDED}
    if new.comment is not None and new.comment != old.comment:
        yield {"action": "set-properties", "updates": {_COMMENT: new.comment}}
    elif new.comment is None and old.comment is not None:
        yield {"action": "remove-properties", "removals": [_COMMENT]}


def _version(namespace: Namespace, view: ViewInfo, number: int, schema_id: int) -> ViewVersion:
    """Other readers know no name of the catalog: without one a table is in the catalog of the view (spec)."""
    text = view.sql.replace(f"{CATALOG_PLACEHOLDER}.", "")
    values: dict[str, Any] = {
        "version-id": number,
        "schema-id": schema_id,
        "summary": {"engine-name": "lakedbapi", _NAMED_BY_QUERY: str(not view.column_aliases).lower()},
        "representations": [ViewRepresentation(SQLViewRepresentation(type="sql", sql=text, dialect=_DIALECT))],
        "default-namespace": namespace,
    }
    return ViewVersion(**values)
