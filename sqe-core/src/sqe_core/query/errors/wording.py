"""How a text that came from outside is repeated in a message."""

from __future__ import annotations


def shown(text: str, most: int = 128) -> str:
    """Return a text bounded and without control characters, so that a message stays one line of text.

    Example:
        >>> shown("a\\nb")
        'a\N{REPLACEMENT CHARACTER}b'
    """
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
