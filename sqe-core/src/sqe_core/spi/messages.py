"""The IPC message that a batch came in: who sends the batch on can send that, and need not encode it again.

Between the engine and the wire a batch goes through many hands that know nothing of this. So it is kept beside the
batch, and gone with it.
"""

from __future__ import annotations

import weakref

import pyarrow as pa

_MESSAGES: dict[int, tuple[weakref.ref[pa.RecordBatch], pa.ipc.Message]] = {}


def keep_message(batch: pa.RecordBatch, message: pa.ipc.Message) -> None:
    """Remember what a batch was read from; its columns must be plain.

    Nested ones are written in ways that not every reader knows: of no lists there may be no offsets.
    """
    place = id(batch)

    def forget(gone: weakref.ref[pa.RecordBatch]) -> None:
        if _MESSAGES.get(place, (None,))[0] is gone:
            del _MESSAGES[place]

    _MESSAGES[place] = weakref.ref(batch, forget), message


def message_of(batch: pa.RecordBatch) -> pa.ipc.Message | None:
    """Return what exactly this batch was read from, if that is known."""
    kept = _MESSAGES.get(id(batch))
    return kept[1] if kept is not None and kept[0]() is batch else None
