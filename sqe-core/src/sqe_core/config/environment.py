"""`SQE_<SECTION>__<KEY>` and the short names, as a layer above the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqe_core.config.origin import DEFAULT, Fault, KeyPath, Node, Origin, unknown_key

PREFIX = "SQE_"
SECTION_ALIASES: Mapping[str, KeyPath] = {"tls": ("coordinator", "tls")}
SHORT_NAMES: Mapping[str, KeyPath] = {
    "SQE_MODE": ("coordinator", "mode"),
    "SQE_PRODUCTION_MODE": ("coordinator", "production_mode"),
    "SQE_MEMORY_POOL": ("coordinator", "memory_pool"),
}
# Means the limit of this process, whichever of the two it is.
MEMORY_LIMIT = "SQE_MEMORY_LIMIT"
LOG_LEVELS = ("trace", "debug", "info", "warning", "error")


def environment_layer(environ: Mapping[str, str], sections: Collection[str]) -> tuple[Node, tuple[Fault, ...]]:
    """Return the values that the environment gives, as words, and the faults of names that fit nowhere.

    Names without `__` that are no short name are not ours: Kubernetes makes `SQE_COORDINATOR_SERVICE_HOST` and the
    like of every service.
    """
    tree: dict[str, Node] = {}
    faults: list[Fault] = []
    for name in sorted(environ):
        path = _path_of(name)
        if path is None:
            continue
        origin = Origin("environment", name)
        if path[0] not in sections or "" in path:
            known = sorted({*sections, *SECTION_ALIASES})
            faults.append(Fault((), unknown_key(str(path[0]), known).replace("key", "section", 1), origin))
            continue
        fault = insert(tree, path, Node(environ[name], origin, text=True))
        if fault is not None:
            faults.append(fault)
    return Node(tree, DEFAULT), tuple(faults)


def _path_of(name: str) -> KeyPath | None:
    if name in SHORT_NAMES:
        return SHORT_NAMES[name]
    if not name.startswith(PREFIX) or "__" not in name:
        return None
    section, *rest = name.removeprefix(PREFIX).lower().split("__")
    return (*SECTION_ALIASES.get(section, (section,)), *rest)


def insert(tree: dict[str, Node], path: KeyPath, leaf: Node) -> Fault | None:
    """Put a leaf into a tree of tables; two different values for one place are a fault."""
    table = tree
    for part in path[:-1]:
        below = table.setdefault(str(part), Node({}, leaf.origin))
        if not isinstance(below.value, dict):
            return Fault(path, f"contradicts {below.origin}", leaf.origin)
        table = below.value
    earlier = table.setdefault(str(path[-1]), leaf)
    if earlier.value != leaf.value:
        return Fault(path, f"contradicts {earlier.origin}", leaf.origin)
    return None


def process_memory_limit(environ: Mapping[str, str], mode: object) -> tuple[KeyPath, Node] | None:
    """Where `SQE_MEMORY_LIMIT` belongs in a process of this mode."""
    if MEMORY_LIMIT not in environ:
        return None
    section = "worker" if mode == "worker" else "coordinator"
    return (section, "memory_limit"), Node(environ[MEMORY_LIMIT], Origin("environment", MEMORY_LIMIT), text=True)


def log_level(environ: Mapping[str, str]) -> tuple[str, tuple[Fault, ...]]:
    """`SQE_LOG`, default `info`."""
    word = environ.get("SQE_LOG", "info").strip().lower()
    level = "warning" if word == "warn" else word
    if level in LOG_LEVELS:
        return level, ()
    origin = Origin("environment", "SQE_LOG")
    return "info", (Fault((), f'expected one of {", ".join(LOG_LEVELS)}, not "{word}"', origin),)
