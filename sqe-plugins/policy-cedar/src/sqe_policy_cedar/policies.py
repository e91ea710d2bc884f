"""Policy texts become policies with ids and annotations that are known to be right.

Cedar numbers policies by position and shrugs at annotations. Here every policy names itself with `@id`, and an
annotation that would do nothing is a fault: a misspelt `@filter` must not mean "all rows" (POL-4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cedarpy

from sqe_core.spi import Mask
from sqe_policy_cedar.annotations import read_expression, read_mask
from sqe_policy_cedar.bounds import check_policy_text
from sqe_policy_cedar.names import EntityUid, with_catalog

Json = Any
"""What `json.loads` returns: Cedar's policies and residuals are trees of it."""

_TO_READ = frozenset({"advice", "description", "owner"})
"""Annotations for people."""

CONTEXT_OF_ALL = frozenset({"*"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    id: str
    effect: str
    mask: Mask | None
    filter: str | None
    tree: Json


class PolicyTextError(ValueError):
    """Policies that cannot be used; the text names file and policy, and holds no policy text (OBS-2)."""


def read_policies(texts: Sequence[tuple[str, str]], catalog: str | None = None) -> dict[str, Policy]:
    """Parse the files, given as name and text; `catalog` is that of names without one.

    Raises:
        PolicyTextError: a file is broken, or a policy has no id of its own, or an annotation is wrong.
    """
    policies: dict[str, Policy] = {}
    places: dict[str, str] = {}
    for name, text in texts:
        for policy in _file(name, text, catalog):
            if policy.id in policies:
                raise PolicyTextError(f'{name}: the id "{policy.id}" is used already, in {places[policy.id]}')
            policies[policy.id] = policy
            places[policy.id] = name
    if not policies:
        raise PolicyTextError("there is no policy in it")
    return policies


def _file(name: str, text: str, catalog: str | None) -> Iterator[Policy]:
    try:
        check_policy_text(text)
        parsed = json.loads(cedarpy.policies_to_json_str(text))
    except ValueError as error:
        raise PolicyTextError(f"{name}: {shortened(error)}") from error
    if parsed["templates"] or parsed["templateLinks"]:
        raise PolicyTextError(f"{name}: templates (?principal, ?resource) are not supported")
    trees = with_catalog(parsed["staticPolicies"], catalog)
    # Cedar counts from zero in the order of the text.
    for number in range(len(trees)):
        tree = trees[f"policy{number}"]
        annotations = tree.get("annotations", {})
        own_id = annotations.get("id")
        if not own_id:
            raise PolicyTextError(f'{name}: policy {number + 1} has no @id("…")')
        try:
            yield _policy(own_id, tree, annotations)
        except ValueError as error:
            raise PolicyTextError(f'{name}: policy "{own_id}": {error}') from error


def _policy(own_id: str, tree: Json, annotations: Mapping[str, str | None]) -> Policy:
    unknown = annotations.keys() - {"id", "mask", "filter"} - _TO_READ
    if unknown:
        known = ", ".join(f"@{name}" for name in ("id", "mask", "filter", *sorted(_TO_READ)))
        raise ValueError(f"@{sorted(unknown)[0]} is not known; known: {known}")
    mask = filter_text = None
    if "mask" in annotations:
        try:
            mask = read_mask(annotations["mask"] or "")
        except ValueError as error:
            raise ValueError(f"@mask {error}") from error
    if "filter" in annotations:
        try:
            filter_text = read_expression(annotations["filter"] or "")
        except ValueError as error:
            raise ValueError(f"@filter {error}") from error
    return Policy(id=own_id, effect=tree["effect"], mask=mask, filter=filter_text, tree=tree)


def check_annotations(policies: Mapping[str, Policy], ancestors: Mapping[EntityUid, frozenset[EntityUid]]) -> None:
    """Refuse annotations on policies that are never asked for them.

    Args:
        policies: the policies.
        ancestors: the groups that each action is in, by the schema.
    """
    for policy in policies.values():
        masked = "read_column" if policy.effect == "permit" else "read_column_clear"
        for wrong, name, action in (
            (policy.mask is not None, "mask", masked),
            (policy.filter is not None, "filter", "read_row"),
        ):
            if wrong and not _covers(policy.tree["action"], EntityUid("Action", action), ancestors):
                raise PolicyTextError(
                    f'policy "{policy.id}": @{name} on a {policy.effect} has a meaning for Action::"{action}" only'
                )


def _covers(scope: Json, action: EntityUid, ancestors: Mapping[EntityUid, frozenset[EntityUid]]) -> bool:
    if scope["op"] == "All":
        return True
    named = {EntityUid(each["type"], each["id"]) for each in scope.get("entities", [scope.get("entity")])}
    return action in named or (scope["op"] == "in" and not named.isdisjoint(ancestors.get(action, frozenset())))


def policy_set(policies: Mapping[str, Policy]) -> cedarpy.PolicySet:
    """Make Cedar's set, in which policies have their own ids."""
    trees = {policy.id: policy.tree for policy in policies.values()}
    text = json.dumps({"staticPolicies": trees, "templates": {}, "templateLinks": []})
    try:
        return cedarpy.PolicySet.from_json_str(text)
    except ValueError as error:
        # They were parsed before: only the depth of an expression, about 60 operators in a row, is left to refuse.
        raise PolicyTextError("a condition is too deep: split it into several policies, or use a set") from error


def named_entities(tree: Json) -> Iterator[EntityUid]:
    for node in _nodes(tree):
        if isinstance(node, dict) and node.keys() == {"type", "id"} and all(isinstance(x, str) for x in node.values()):
            yield EntityUid(node["type"], node["id"])


def named_types(tree: Json) -> Iterator[str]:
    for node in _nodes(tree):
        if isinstance(node, dict) and isinstance(node.get("entity_type"), str):
            yield node["entity_type"]
    yield from (uid.type for uid in named_entities(tree))


def used_context(trees: Sequence[Json]) -> frozenset[str]:
    """Return the attributes of the context that policies look at; `CONTEXT_OF_ALL` when that cannot be told."""
    used: set[str] = set()
    variables = attributes = 0
    for node in (node for tree in trees for node in _nodes(tree)):
        if not isinstance(node, dict):
            continue
        variables += node == {"Var": "context"}
        for operator in (".", "has"):
            access = node.get(operator)
            if isinstance(access, dict) and access.get("left") == {"Var": "context"}:
                used.add(access["attr"])
                attributes += 1
    return frozenset(used) if variables == attributes else CONTEXT_OF_ALL


def _nodes(tree: Json) -> Iterator[Json]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def shortened(error: object) -> str:
    return " ".join(str(error).split())[:200]
