# SPDX-License-Identifier: Apache-2.0
"""Run packaged AI agents in isolation.

    async with murmur.launch("helper/", task="What is here?") as session:
        async for event in session:
            print(event.kind.name, event.text)

The same without ``async`` works in a program without an event loop. Each session is a process of its own, which ends with
the block. :class:`Door` talks to a capsule that runs already, and needs no library.
"""

from typing import Any

from ._library import Event, Kind, MurmurError, version
from .door import Door, DoorError
from .request import Options, explain
from .session import AsyncSession, Launch, Session, TaskFailed, launch


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["AsyncSession", "Door", "DoorError", "Event", "Kind", "Launch", "MurmurError", "Options", "Session", "TaskFailed", "explain",
           "launch", "version"]
