"""From what `connect()` is given (a path, a URL, DuckDB's ATTACH text, options) to `ConnectOptions`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from lakedbapi.errors import InterfaceError, OperationalError, ProgrammingError
from lakedbapi.model.catalog import AsOf

DEFAULT_ALIAS = "lake"
DEFAULT_SCHEMA = "main"
CATALOG_FILE = "catalog.sqlite"
DATA_DIRECTORY = "data/"

FORMATS = ("ducklake", "delta", "iceberg", "hudi")
STORAGE_PREFIX = "storage_options."
"""Options of the filesystem are format options under this prefix: `storage_options.endpoint_url`."""

CONNECTION_OPTIONS = frozenset(
    {
        "alias",
        "schema",
        "as_of",
        "read_only",
        "autocommit",
        "allow_external",
        "allow_attach",
        "progress",
        "format",
        "storage_options",
    }
)
CREDENTIALS = frozenset({"user", "password"})

FORMAT_OPTIONS: Mapping[str, frozenset[str]] = {
    "ducklake": frozenset(
        {
            *("data_path", "override_data_path", "metadata_schema", "busy_timeout", "create_if_not_exists"),
            *("data_inlining_row_limit", "encrypted", "ducklake_version", "automatic_migration"),
        }
    ),
    "delta": frozenset({"non_atomic"}),
    "iceberg": frozenset({"warehouse", "catalog", "non_atomic"}),
    "hudi": frozenset({"read_optimized", "meta_columns"}),
}

SERVERS = {"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
ICEBERG_SERVERS = frozenset({"rest", "https", "postgresql", "postgres", "mysql", "mariadb"})
"""Catalogs that take a login."""
FILES = {"sqlite": "sqlite", "duckdb": "duckdb"}
STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})

SERVER_OPTIONS: Mapping[str, frozenset[str]] = {
    "postgresql": frozenset(
        {
            *("sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name", "options"),
            *("host", "port", "target_session_attrs", "service", "keepalives", "channel_binding", "gssencmode"),
        }
    ),
    "mysql": frozenset(
        {"charset", "unix_socket", "connect_timeout", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert"}
    ),
}
"""Query options that go on to the server's own client."""

_SECRET = re.compile(
    r"passw|secret|token|credential|account_key|access_key$|private|connection_string|\bsas\b|api_?key"
)
_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_ATTACH = re.compile(rf"^({'|'.join((*FORMATS, 'lake'))}):(?!//)(.*)$", re.IGNORECASE | re.DOTALL)
_KINDS = (*SERVERS, *FILES, *ICEBERG_SERVERS, *STORES, "hive", "file")
_SCHEME = re.compile(rf"((?:{'|'.join((*FORMATS, 'lake'))})\+\w+|{'|'.join(_KINDS)}):", re.IGNORECASE)
"""What a URL begins with, in a path that would have to be meant for one."""
_PATH_AND_QUERY = re.compile(r"([^?]*)\?(\w[\w.]*=.*)", re.DOTALL)
_CONNINFO = re.compile(r"(\w+)\s*=\s*('(?:\\.|[^'\\])*'|\S*)")
_MYSQL_NAMES = {"db": "database", "passwd": "password", "socket": "unix_socket"}


@dataclass(frozen=True)
class ConnectOptions:
    """What a connection is made with. `format` None: no default catalog, everything comes by ATTACH.

    `location` is in the format's own normal form (for DuckLake `sqlite:/file`, `duckdb:/file`, `postgresql://…`,
    `mysql://…`; for others a path or URL) and may carry a password, as may `format_options`.
    """

    format: str | None
    location: str = ""
    format_options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    alias: str = DEFAULT_ALIAS
    schema: str = DEFAULT_SCHEMA
    as_of: AsOf | None = None
    read_only: bool = False
    autocommit: bool = False
    allow_external: bool = False
    allow_attach: bool = False
    progress: bool = False

    @property
    def shown(self) -> str:
        """What is connected to, for messages: without secrets."""
        return "lake://" if self.format is None else f"{self.format} {masked(self.location)}"

    def __repr__(self) -> str:
        """Without secrets."""
        options = {name: "***" if _SECRET.search(name) else value for name, value in self.format_options.items()}
        return f"ConnectOptions({self.shown!r}, {options!r}, alias={self.alias!r})"


def parse(database: str | os.PathLike[str], **options: Any) -> ConnectOptions:
    """The options of `connect(database, **options)`.

    `database` is a path, a URL or DuckDB's ATTACH text. Options in a URL's query count unless `options` has them too;
    InterfaceError for an unknown one, or for a secret in a query. OperationalError if it cannot be told what is there.
    """
    text = os.fspath(database)
    given = {name: value for name, value in options.items() if value is not None}
    _check_texts(given)
    try:
        format, location, found = _target(text, given)
    except OSError as error:
        raise OperationalError(f"{error.filename}: looking for it failed: {error.strerror}") from error
    return _build(format, location, found, masked(text))


def parse_attach(location: str, alias: str | None, options: Mapping[str, str]) -> ConnectOptions:
    """The options of `ATTACH 'location' AS alias (options)`; DuckDB's option names, in lower case."""
    given: dict[str, Any] = dict(options)
    kind = given.pop("type", None)
    if kind is not None:
        given.setdefault("format", kind.lower())
    points = [given.pop(name) for name in ("snapshot_version", "snapshot_time", "as_of") if name in given]
    if len(points) > 1:
        raise ProgrammingError("ATTACH takes one of SNAPSHOT_VERSION, SNAPSHOT_TIME and AS_OF")
    if points:
        given["as_of"] = points[0]
    if alias is not None:
        given["alias"] = alias
    attached = parse(location, **given)
    if attached.format is None:
        raise ProgrammingError(
            f"ATTACH {masked(location)!r}: say what to attach, such as 'ducklake:sqlite:file.sqlite'"
        )
    return attached if alias is not None else replace(attached, alias=_alias_of(location))


def masked(text: str) -> str:
    """A location or URL without the password in it."""
    text = re.sub(r"(://[^/@:\s]*):[^/\s]*@", r"\1:***@", text)
    return re.sub(r"(?i)\b(passw\w*)\s*=\s*('(?:\\.|[^'\\])*'|[^\s&]*)", r"\1=***", text)


def point(value: AsOf | int | str | date, *, refs: bool = False) -> AsOf:
    """The point in time that `as_of` names: a version, a timestamp (naive = UTC), or with `refs` a branch or tag."""
    if isinstance(value, AsOf):
        return value
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return AsOf(version=index(value))
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"\d+", text):
            return AsOf(version=int(text))
        try:
            value = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
        except ValueError:
            if refs:
                return AsOf(ref=text)
            raise InterfaceError(
                f"as_of={text!r} is neither a version nor a timestamp such as '2026-03-01 12:00:00+00:00'"
            ) from None
    if not isinstance(value, datetime):
        raise InterfaceError(f"as_of must be a version, a timestamp or a text of one, not a {type(value).__name__}")
    return AsOf(timestamp=value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc))


def _target(text: str, options: dict[str, Any]) -> tuple[str | None, str, dict[str, Any]]:
    """(format, location, all options) of what connect() was given."""
    if _URL.match(text):
        return _from_url(text, options)
    attach = _ATTACH.match(text)
    if attach:
        return _from_attach_text(attach[1].lower(), attach[2], options)
    if not text:
        raise InterfaceError("connect() needs a directory, a file or a URL; 'lake://' connects without a catalog")
    path, options = _without_query(text, options)
    scheme = _SCHEME.match(path)
    if scheme and not os.path.exists(path):
        raise _no_url(scheme[1].lower())
    return _from_path(path, options)


def _from_url(text: str, options: dict[str, Any]) -> tuple[str | None, str, dict[str, Any]]:
    url = _split(text)
    format, _, kind = url.scheme.partition("+")
    if kind == "lakedbapi":
        kind = ""
    if format not in (*FORMATS, "lake") or (format == "lake" and kind):
        raise _unknown_scheme(url.scheme)
    options = {**_query(url.query), **options}
    if format == "lake":
        path = _local_path(url)
        return _from_path(path, options) if path else (None, "", options)
    if format == "ducklake":
        return _ducklake_url(url, kind, options)
    if kind:
        netloc = _with_login(url.netloc, options) if kind in ICEBERG_SERVERS else url.netloc
        return format, f"{kind}://{netloc}{unquote(url.path)}", options
    return format, _absolute(_local_path(url)), options


def _split(text: str) -> SplitResult:
    """The parts of a URL; a `#` in a path is one of its characters."""
    url = urlsplit(text, allow_fragments=False)
    if "@" not in url.netloc and "@" in text and re.search(r":(?!\d+(,|$))", url.netloc.rpartition("]")[2]):
        raise InterfaceError(
            f"{url.scheme}://… has a login that a /, ? or # cuts short: write it as %2F, %3F or %23, or give it as "
            "user= and password="
        )
    return url


def _unknown_scheme(scheme: str) -> InterfaceError:
    return InterfaceError(
        f"unknown URL scheme {scheme!r}: use {', '.join(f'{name}://' for name in FORMATS)} or lake://"
        f"{_with_format(scheme)}"
    )


def _with_format(scheme: str) -> str:
    """What may have been meant by a scheme that says no format."""
    kind, _, driver = scheme.partition("+")
    if kind in SERVERS or kind in FILES:
        return f"; a DuckLake whose catalog is there is ducklake+{kind}://…"
    if kind in STORES:
        formats = ", ".join(f"{format}+{scheme}://…" for format in FORMATS if format != "ducklake")
        return f"; tables there are {formats}, by their format, and a DuckLake has data_path={scheme}://…"
    if kind == "file":
        return "; a local path stands alone"
    if kind in ("http", "https", "rest", "glue", "hive"):
        return f"; tables of an Iceberg catalog there are iceberg+{kind}://…"
    if driver in FORMATS:
        return f"; lake+{driver}:// is {driver}://"
    return ""


def _no_url(scheme: str) -> InterfaceError:
    """For a scheme that no `//` follows."""
    if "+" not in scheme:
        return _unknown_scheme(scheme)
    is_file = scheme.partition("+")[2] in (*FILES, "file")
    places = f"{scheme}:///relative/path or {scheme}:////absolute/path" if is_file else f"{scheme}://host/…"
    return InterfaceError(f"{scheme}: is followed by slashes: {places}")


def _ducklake_url(url: SplitResult, kind: str, options: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    if kind in SERVERS:
        return "ducklake", _server_url(url, SERVERS[kind], options), options
    if kind and kind not in FILES:
        raise InterfaceError(
            f"a DuckLake catalog cannot lie in {kind!r}: use ducklake+sqlite, ducklake+duckdb, ducklake+postgresql or "
            "ducklake+mysql, and data_path for where the data files go"
        )
    path = _local_path(url)
    if not path:
        raise InterfaceError(
            f"{url.scheme}:// needs the catalog's file: {url.scheme}:///relative or {url.scheme}:////absolute"
        )
    if kind:
        return "ducklake", f"{FILES[kind]}:{_absolute(path)}", options
    _, location, options = _from_path(path, {**options, "format": "ducklake"})
    return "ducklake", location, options


def _server_url(url: SplitResult, server: str, options: dict[str, Any]) -> str:
    """`postgresql://user:password@host/db?…`; takes credentials and the client's own options out of `options`."""
    netloc = _with_login(url.netloc, options)
    _, colon, port = netloc.rpartition("@")[2].rpartition("]")[2].partition(":")
    if colon and not port.isdigit():
        raise InterfaceError(f"{server}://…:{port}{url.path} has {port!r} in the place of a port's number")
    client = {name: str(options.pop(name)) for name in sorted(SERVER_OPTIONS[server] & options.keys())}
    return f"{server}://{netloc}{url.path}" + (f"?{urlencode(client)}" if client else "")


def _with_login(netloc: str, options: dict[str, Any]) -> str:
    """`user:password@host`; takes the credentials out of `options`, where they count more than those in `netloc`."""
    user, password = options.pop("user", None), options.pop("password", None)
    if user is None and password is None:
        return netloc
    old_user, _, old_password = netloc.rpartition("@")[0].partition(":")
    name = old_user if user is None else quote(user, safe="")
    secret = old_password if password is None else quote(password, safe="")
    return f"{name}{f':{secret}' if secret else ''}@{netloc.rpartition('@')[2]}"


def _without_query(path: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A path without the `?name=value&…` that a URL may end with, unless that is how something there is called."""
    match = _PATH_AND_QUERY.fullmatch(path)
    if match is None or os.path.exists(os.path.expanduser(path)):
        return path, options
    return match[1], {**_query(match[2]), **options}


def _query(text: str) -> dict[str, Any]:
    options = dict(parse_qsl(text, keep_blank_values=True))
    secrets = sorted(name for name in options if _SECRET.search(name.lower()))
    if secrets:
        raise InterfaceError(
            f"{secrets[0]!r} must not stand in a URL's query, where logs show it: put it into the URL's password slot, "
            "pass it to connect() (create_engine: connect_args) as password= or storage_options=, or set it in the "
            "environment"
        )
    return options


def _local_path(url: SplitResult) -> str:
    """The path of a URL: three slashes relative, four absolute."""
    if url.netloc:
        host = url.netloc.rpartition("@")[2]
        raise InterfaceError(
            f"{url.scheme}://{host}{url.path} has {host!r} in the place of a server: a local path takes three slashes "
            f"({url.scheme}:///relative/path), an absolute one four"
        )
    return unquote(url.path.removeprefix("/"))


def _from_attach_text(format: str, rest: str, options: dict[str, Any]) -> tuple[str | None, str, dict[str, Any]]:
    """`ducklake:sqlite:file`, `ducklake:postgres:dbname=…`, `delta:path`, or one of them with a URL."""
    kind, _, detail = rest.partition(":")
    kind = kind.lower()
    is_catalog = format == "ducklake" and (kind in SERVERS or kind in FILES)
    if _URL.match(detail) and is_catalog:
        rest = detail
    if _URL.match(rest):
        return _from_attached_url(format, rest, options)
    if is_catalog and kind in SERVERS:
        return format, _conninfo_url(SERVERS[kind], detail, options), options
    path, options = _without_query(detail if is_catalog else rest, options)
    if not path:
        raise InterfaceError(f"{format}:{rest} needs a directory or a file: {format}:{rest}path")
    if is_catalog:
        return format, f"{FILES[kind]}:{_absolute(path)}", options
    scheme = _SCHEME.match(path)
    if scheme and not os.path.exists(path):
        raise _no_url(f"{format}+{scheme[1].lower()}")
    if format == "lake":
        return _from_path(path, options)
    if format != "ducklake":
        return format, _absolute(path), options
    # DuckDB takes any other text for a DuckDB file; a directory or SQLite file that is there is read as what it is.
    if Path(path).exists():
        _, location, options = _from_path(path, {**options, "format": format})
        return format, location, options
    return format, f"duckdb:{_absolute(path)}", options


def _from_attached_url(format: str, url: str, options: dict[str, Any]) -> tuple[str | None, str, dict[str, Any]]:
    """`ducklake:postgresql://…`, `delta:s3://…`: the URL with `+`, where that cannot mean another path."""
    kind, _, path = url.partition("://")
    if format == "ducklake" and kind in FILES and path.startswith("/") and not path.startswith("//"):
        path, query, options_text = path[1:].partition("?")
        raise InterfaceError(
            f"ducklake:{masked(url)} is half a URL: write ducklake+{kind}:///{path}{query}{masked(options_text)} for "
            f"{path} in the working directory, and with four slashes for /{path}"
        )
    return _from_url(f"{format}+{url}", options)


def _conninfo_url(server: str, detail: str, options: dict[str, Any]) -> str:
    """A server URL from libpq's `name=value` text."""
    given = {name.lower(): _unquoted(value) for name, value in _CONNINFO.findall(detail)}
    given = {_MYSQL_NAMES.get(name, name): value for name, value in given.items()} if server == "mysql" else given
    user, password = given.pop("user", ""), given.pop("password", "")
    host, port = given.pop("host", ""), given.pop("port", "")
    database = given.pop("dbname" if server == "postgresql" else "database", "")
    if host.startswith("/"):
        given["host" if server == "postgresql" else "unix_socket"] = host
        host = ""
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    if "?" in host + database:
        raise InterfaceError(
            f"behind {server}:name=value … no ?option=value follows: give it to connect(), or write "
            f"ducklake+{server}://host/database?option=value"
        )
    address = f"{login}@" * bool(login) + host + (f":{port}" if port not in ("", "0") else "")
    unknown = sorted(given.keys() - SERVER_OPTIONS[server])
    if unknown:
        raise InterfaceError(
            f"unknown {server} option {unknown[0]!r}; known are: {', '.join(sorted(SERVER_OPTIONS[server]))}"
        )
    url = urlsplit(f"{server}://{address}/{quote(database)}")
    return _server_url(url, server, _moved(given, options))


def _moved(client: dict[str, str], options: dict[str, Any]) -> dict[str, Any]:
    """The server's own options, with the credentials taken out of `options`."""
    return {**client, **{name: options.pop(name) for name in CREDENTIALS & options.keys()}}


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith("'") else value


def _from_path(text: str, options: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """What a plain path is: told by `format`, else by what lies there, else a DuckLake to be created."""
    if text == ":memory:":
        raise InterfaceError(
            "a lake lies in files: give a directory, for a lake of the moment that of tempfile.TemporaryDirectory(); "
            "lake:// has no catalog yet"
        )
    path = Path(_absolute(text))
    format = str(options.get("format") or _sniffed_format(path)).lower()
    if format != "ducklake":
        return format, str(path), options
    if path.is_file() or (not path.exists() and path.suffix in _CATALOG_SUFFIXES):
        return format, f"{_catalog_kind(path)}:{path}", options
    catalog = path / CATALOG_FILE
    # A catalog that exists knows where its data lies, unless it is empty.
    exists = catalog.exists() and catalog.stat().st_size > 0
    new = {} if exists else {"data_path": f"{path.as_posix()}/{DATA_DIRECTORY}"}
    return format, f"sqlite:{catalog}", {**new, **options}


_CATALOG_SUFFIXES = {
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".ducklake": "duckdb",
    ".duckdb": "duckdb",
}


_MARKERS = {"_delta_log/": "delta", ".hoodie/": "hudi", "metadata/*.metadata.json": "iceberg"}
"""What the directory of a table has in it."""


def _sniffed_format(path: Path) -> str:
    """That of the table which the directory is, of the lake in it, or of tables one or two levels below."""
    for depth in ("",) if (path / CATALOG_FILE).exists() else ("", "*/", "*/*/"):
        for marker, format in _MARKERS.items():
            if any(path.glob(f"{depth}{marker}")):
                return format
    return "ducklake"


def _catalog_kind(path: Path) -> str:
    """`sqlite` or `duckdb`, by the file's first bytes, else by its suffix."""
    if path.is_file():
        head = path.open("rb").read(16)
        if head.startswith(b"SQLite format 3"):
            return "sqlite"
        if head[8:12] == b"DUCK":
            return "duckdb"
        if head:
            raise InterfaceError(
                f"{path} is no lake: neither a directory nor a SQLite or DuckDB file that holds a DuckLake catalog"
            )
    return _CATALOG_SUFFIXES.get(path.suffix, "sqlite")


def _is_text(value: str) -> bool:
    """Whether it can be the name of a file or server, and stand in a catalog."""
    return re.search("[\0\ud800-\udfff]", value) is None


def _check_texts(options: Mapping[str, Any]) -> None:
    """InterfaceError for an option that is no text for a lake; what it is may be a secret."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            _check_texts({f"{name}.{inner}": item for inner, item in value.items()})
        elif not _is_text(_text(value)):
            raise InterfaceError(f"{name} has a character that no name can have: a NUL, or half of a surrogate pair")


def _absolute(path: str) -> str:
    if not _is_text(path):
        raise InterfaceError(f"{path!r} is no path: names of files and directories are UTF-8 without NUL")
    return re.sub("^//+", "/", os.path.abspath(os.path.expanduser(path)))


def _alias_of(location: str) -> str:
    """The name that an attached catalog gets without AS: that of its file or directory, as DuckDB does it."""
    name = re.split(r"[:/\\=\s]", masked(location).split("?")[0].rstrip("/"))[-1]
    return re.sub(r"\W", "_", name.partition(".")[0]) or DEFAULT_ALIAS


def _build(format: str | None, location: str, options: dict[str, Any], shown: str) -> ConnectOptions:
    _check_texts({repr(shown): unquote(location) if "://" in location else location, **options})
    asked = options.pop("format", None)
    if asked is not None and format is not None and str(asked).lower() != format:
        raise InterfaceError(f"{shown} is {format}, not {asked}")
    if format is not None and format not in FORMATS:
        raise InterfaceError(f"unknown format {format!r}; known are: {', '.join(FORMATS)}")
    if options.keys() & CREDENTIALS:
        raise InterfaceError(
            f"{shown} has no server to log in to: leave out user and password (storage takes storage_options)"
        )
    as_of = options.pop("as_of", None)
    return ConnectOptions(
        format,
        location,
        alias=str(options.pop("alias", DEFAULT_ALIAS)),
        schema=str(options.pop("schema", DEFAULT_SCHEMA)),
        as_of=None if as_of is None else point(as_of, refs=format == "iceberg"),
        read_only=_flag(options, "read_only") or as_of is not None,
        autocommit=_flag(options, "autocommit"),
        allow_external=_flag(options, "allow_external"),
        allow_attach=_flag(options, "allow_attach"),
        progress=_flag(options, "progress"),
        format_options=MappingProxyType(_format_options(format, options)),
    )


def _format_options(format: str | None, options: dict[str, Any]) -> dict[str, str]:
    storage = _flattened(options.pop("storage_options", {}), STORAGE_PREFIX)
    known = FORMAT_OPTIONS[format] if format is not None else frozenset()
    unknown = sorted(name for name in options if name not in known and not name.startswith(STORAGE_PREFIX))
    if unknown:
        names = ", ".join(sorted(CONNECTION_OPTIONS | known))
        raise InterfaceError(
            f"unknown option {unknown[0]!r} for {format or 'lake://'}; known are: {names}, storage_options.*"
        )
    found = {name: _text(value) for name, value in options.items()}
    path = found.get("data_path")
    if path is not None:
        found["data_path"] = path if _URL.match(path) else _absolute(path).replace(os.sep, "/").rstrip("/") + "/"
    return {**found, **storage}


def _flattened(options: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Nested mappings as dotted names."""
    flat: dict[str, str] = {}
    for name, value in options.items():
        flat.update(
            _flattened(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: _text(value)}
        )
    return flat


def _text(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else os.fspath(value)
        if isinstance(value, os.PathLike)
        else str(value)
    )


def _flag(options: dict[str, Any], name: str) -> bool:
    value = options.pop(name, False)
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("", "1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise InterfaceError(f"{name}={value!r} is neither true nor false")
