"""Writes docs/configuration.md from the dataclasses: `python -m sqe_core.config.reference > docs/configuration.md`.

The keys of a plugin's kind stand on the plugin's own page; `python -m sqe_core.config.reference package.module:Config`
writes their table.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.show import UNSET
from sqe_core.config.values import Share, format_bytes, format_duration
from sqe_core.config.walk import Key, keys
from sqe_core.spi.identity import Secret

_TITLES = {
    "catalog": "`[catalog]`, and the same keys in `[catalogs.<name>]`",
    "auth.providers.*": "`[[auth.providers]]`",
}

_INTRODUCTION = """\
# Configuration

<!-- Generated from sqe_core.config: python -m sqe_core.config.reference > docs/configuration.md -->

One TOML file serves coordinator and worker. It is named by `--config`/`-c FILE`, else by `SQE_CONFIG`, else it is
`./sqe.toml`.

| command | does | exit code |
|---|---|---|
| `sqe config check [-c FILE]` | all that keeps a server from starting, or `ok`; nothing is made | 0, 2 |
| `sqe config show [--sources] [-c FILE]` | every key with its value, secrets redacted, and where it came from | 0, 2 |
| `sqe doctor [-c FILE]` | what would keep SQE from working on this machine, with the bad pair | 0, 1, 2 |

Exit code 2 means that the configuration (or the command line) cannot be used, 1 that something else is wrong.

## Rules

- **Precedence**: command line, environment, file, default. Tables merge; single values and arrays replace.
- **Byte sizes** are text with `B`, `K`/`KB`, `M`/`MB`, `G`/`GB` or `T`/`TB`, fractions allowed (`"1.5GB"`; K is 1024),
  or a bare number of bytes. **Durations** without a unit in the key's name are text such as `"24h"`, `"15m"`, `"90s"`.
  **Shares** are `"20%"` or a byte size.
- **Unknown keys** stop SQE, with the known ones listed.
- **Secrets** are text, `{ env = "NAME" }` or `{ file = "/run/secrets/name" }` (a newline at the end of the file does
  not count). An unset variable or an unreadable file is a fault. Secrets never print.
- **Spelling**: keys are snake_case. What a plugin reads under other names too stands on its page.
- **Protocols**: `[protocols.<kind>]` serves any protocol that is installed, with `port` and the keys of the kind.
  `coordinator.flight_sql_port`, `trino_http_port` and `quack_port` are older names of the `port` of `flight`, `trino`
  and `quack`.
- **A catalog's kind**: the keys of the kind stand beside `type`, or together with it in `[catalog.backend]`; both
  mean the same.

## Environment

`SQE_<SECTION>__<KEY>` overrides every key; each level of nesting adds `__`, array entries their index:

```sh
SQE_QUERY__TIMEOUT_SECS=60
SQE_METRICS__AUDIT__FORMAT=ocsf
SQE_CATALOGS__LAKE__WAREHOUSE=sales
SQE_AUTH__PROVIDERS__0__CLIENT_SECRET__FILE=/run/secrets/client
SQE_AUTH__ADMIN_ROLES=admin,operator
SQE_QUERY__ROLE_OVERRIDES='{ etl = 3600 }'
```

Truth values are `true`, `1`, `yes`, `false`, `0`, `no`. Arrays are comma-separated or written as in TOML. Names with
`__` that fit no key are faults; other names that begin with `SQE_` are left alone, because Kubernetes makes such names
of every service.

| short name | means |
|---|---|
| `SQE_CONFIG` | the file |
| `SQE_MODE` | `coordinator.mode` |
| `SQE_PRODUCTION_MODE` | `coordinator.production_mode` |
| `SQE_MEMORY_LIMIT` | `coordinator.memory_limit`, in a worker `worker.memory_limit` |
| `SQE_MEMORY_POOL` | `coordinator.memory_pool` |
| `SQE_LOG` | log level: `trace`, `debug`, `info`, `warning`, `error` |
| `SQE_TLS__CERT_FILE`, `SQE_TLS__KEY_FILE`, `SQE_TLS__CA_FILE` | `[coordinator.tls]` |

## Names of catalogs

- Without `[catalogs.*]`, the one `[catalog]` is called, first match: `query.default_catalog`, `warehouse` when that is
  a plain identifier, `type` when it is written, `iceberg`. The names `iceberg`, the warehouse and the type resolve to
  it too.
- With `[catalogs.*]` they are mounted sorted by name; `[catalog]` joins them only under the name in
  `query.default_catalog`.

## Keys

The keys of a kind that a plugin brings are on the plugin's page, and stand in the table that names the kind, in
`[policy.<kind>]`, `[access_control.<kind>]` or `[protocols.<kind>]`: [`[policy.grants]`](governance-store.md),
[`[policy.opa]`](policy-opa.md), [`[policy.cedar]`](policy-cedar.md), [catalogs of type `rest` and its
relatives](rest-catalogs.md).

In the last column: what the key becomes on Spark, or that it has no effect and why, which `sqe doctor` says too. *Not
built yet* means that SQE checks the key, and that a server which is asked to use it stops with a sentence.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *_tables()]) + "\n"


def plugin_table(config_type: type[Any]) -> str:
    """The keys of a plugin's kind, for the plugin's own page."""
    heading = "| key | type | default | meaning |\n|---|---|---|---|"
    return (
        "\n".join(
            [
                heading,
                *(
                    _cells(".".join(map(str, key.path)), _type(key), _default(key), _meaning(key))
                    for key in keys(config_type)
                ),
            ]
        )
        + "\n"
    )


def _tables() -> Iterator[str]:
    table = ""
    for key in keys(SqeConfig):
        if key.path[0] == "catalogs":
            continue  # the keys of [catalog]
        parent = ".".join(map(str, key.path[:-1]))
        if parent != table:
            table = parent
            yield f"\n### {_TITLES.get(parent, f'`[{parent}]`' if parent else 'Tables with free names')}\n"
            yield "| key | type | default | meaning | on Spark |\n|---|---|---|---|---|"
        yield _row(key)


def _row(key: Key) -> str:
    return _cells(key.path[-1], _type(key), _default(key), _meaning(key), _on_spark(key))


def _cells(name: object, *cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{name}`", *cells)) + " |"


def _type(key: Key) -> str:
    unit = key.metadata.get("unit")
    if unit is not None:
        return {"bytes": "byte size", "duration": "duration"}[unit]
    return _type_name(key.hint)


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(hint))
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return f"array of {_type_name(arguments[0])}"
    if len(arguments) == 2:
        return f"table of {_type_name(arguments[1])}"
    names = {bool: "true, false", int: "whole number", float: "number", str: "text", Secret: "secret", Share: "share"}
    names[Path] = "path"
    return names.get(hint, "table")


def _default(key: Key) -> str:
    value = key.default
    if value is MISSING:
        return "required"
    if value is None:
        return UNSET
    if key.metadata.get("unit") == "bytes":
        return f"`{format_bytes(value)}`"
    if key.metadata.get("unit") == "duration":
        return f"`{format_duration(value)}`"
    return f"`{value if isinstance(value, Share) else json.dumps(value, default=dict)}`"


def _meaning(key: Key) -> str:
    limits = [
        f"at least {key.metadata['minimum']}" if key.metadata.get("minimum") not in (None, 0) else "",
        f"at most {key.metadata['maximum']}" if "maximum" in key.metadata else "",
    ]
    shown = ", ".join(limit for limit in limits if limit)
    return f"{key.metadata['doc']} ({shown})" if shown else str(key.metadata["doc"])


def _on_spark(key: Key) -> str:
    idle = key.metadata.get("no_effect")
    status = f"no effect: {idle}" if idle else "*not built yet*" if "unbuilt" in key.metadata else ""
    return "; ".join(part for part in (str(key.metadata.get("spark", "")), status) if part)


def _named(place: str) -> type[Any]:
    module, _, name = place.partition(":")
    config_type: type[Any] = getattr(importlib.import_module(module), name)
    return config_type


if __name__ == "__main__":
    sys.stdout.write(plugin_table(_named(sys.argv[1])) if sys.argv[1:] else page())
