"""What tests make several of, and the end of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Made = TypeVar("Made")


def each_ended(make: Callable[..., Made], end: Callable[[Made], object] | None = None) -> Iterator[Callable[..., Made]]:
    """For fixtures: yield what makes things, and afterwards close each of them, or end it in another way."""
    made: list[Made] = []

    def remembered(*given: Any, **named: Any) -> Made:
        made.append(make(*given, **named))
        return made[-1]

    yield remembered
    for each in made:
        if end is None:
            each.close()  # type: ignore[attr-defined]
        else:
            end(each)
