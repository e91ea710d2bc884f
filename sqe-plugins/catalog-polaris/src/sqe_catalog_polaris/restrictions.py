"""What a catalog says of reading a table, beside the table itself: `read-restrictions` of the REST specification.

Nothing of it is understood here; the core reads it. What is added is which fields once had other names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqe_catalog_polaris.transport import unexpected
from sqe_core.spi import ReadRestrictions


def restrictions_of(answer: Mapping[str, Any]) -> ReadRestrictions | None:
    """Return what an answer to `loadTable` restricts; None where it says nothing of that.

    Raises:
        ExternalError: the answer is none of the protocol.
    """
    document = answer.get("read-restrictions")
    if document is None:
        return None
    metadata = answer.get("metadata")
    if not isinstance(document, Mapping) or not isinstance(metadata, Mapping):
        raise unexpected()
    uuid = metadata.get("table-uuid")
    if not isinstance(uuid, str):
        raise unexpected()
    return ReadRestrictions(table_uuid=uuid, document=document, renamed=_renamed(metadata))


def _renamed(metadata: Mapping[str, Any]) -> frozenset[int]:
    """Return the fields with more than one name, or with a name that another field had."""
    names: dict[int, set[str]] = defaultdict(set)
    owners: dict[str, set[int]] = defaultdict(set)
    schemas = metadata.get("schemas")
    if not isinstance(schemas, list) or not schemas:
        raise unexpected()
    for schema in schemas:
        fields = schema.get("fields") if isinstance(schema, Mapping) else None
        if not isinstance(fields, list):
            raise unexpected()
        for field in fields:
            number, name = (field.get("id"), field.get("name")) if isinstance(field, Mapping) else (None, None)
            if type(number) is not int or not isinstance(name, str):
                raise unexpected()
            names[number].add(name)
            owners[name.casefold()].add(number)
    several = {number for number, found in names.items() if len(found) > 1}
    return frozenset(several.union(*(found for found in owners.values() if len(found) > 1)))
