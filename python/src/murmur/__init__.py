# SPDX-License-Identifier: Apache-2.0
"""Run packaged AI agents in isolation.

    async with murmur.launch("helper/", task="What is here?") as session:
        async for event in session:
            print(event.kind.name, event.text)

The same without ``async`` works in a program without an event loop. Each session is a process of its own, which ends with
the block. :class:`Door` talks to a capsule that runs already, and needs no library.
"""

from ._library import Event, Kind, MurmurError, version
from .door import Door, DoorError
from .session import AsyncSession, Launch, Session, TaskFailed, explain, launch

__version__ = version()
__all__ = ["AsyncSession", "Door", "DoorError", "Event", "Kind", "Launch", "MurmurError", "Session", "TaskFailed", "explain",
           "launch", "version"]
