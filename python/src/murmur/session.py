# SPDX-License-Identifier: Apache-2.0
"""Sessions, with an event loop and without."""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from ._library import CREDENTIAL, Event, Kind, MurmurError, call, decode, duplicate, encode, event_of, library, taken

TOTALS = {"turns": 1, "input_tokens": 2, "output_tokens": 3, "duration_ms": 4}
Keys = Callable[[str], str | None] | Mapping[str, str]
Path = str | os.PathLike[str]


class TaskFailed(Exception):
    """A task that did not complete: ``state`` is A2A's word, ``str()`` what was said of it."""

    def __init__(self, state: str, said: str | None):
        super().__init__(said or state)
        self.state = state


class _Request:
    """A filled request; kept while sessions of it may ask for keys."""

    def __init__(self, capsule: Path | None, options: dict[str, Any]):
        self.handle = library.mur_request_new()
        weakref.finalize(self, library.mur_request_free, self.handle)
        self.callback: Any = None
        self._which(capsule, options)
        for name in ("workdir", "system_prompt", "containment", "resume", "context", "task_acceptance", "after_task",
                     "conversation", "program"):
            value = options.pop(name, None)
            if value is not None:
                getattr(library, f"mur_request_set_{name}")(self.handle, encode(value))
        if (deadline := options.pop("deadline", None)) is not None:
            library.mur_request_set_deadline(self.handle, int(deadline))
        library.mur_request_set_env_file(self.handle, bool(options.pop("env_file", True)))
        for name, value in (options.pop("env", None) or {}).items():
            library.mur_request_set_variable(self.handle, encode(name), encode(value))
        self._keys(options.pop("credentials", None))
        if options:
            raise TypeError(f"unknown: {', '.join(sorted(options))}")

    def _which(self, capsule: Path | None, options: dict[str, Any]) -> None:
        text, package = options.pop("manifest", None), options.pop("package", None)
        if package:
            name, _, version = package.partition("@")
            library.mur_request_set_capsule(self.handle, encode(name), encode(version))
        elif text is not None:
            data = text.encode()
            library.mur_request_set_manifest_text(self.handle, data, len(data), encode(capsule or "."))
        else:
            library.mur_request_set_manifest(self.handle, encode(capsule or "."))

    def _keys(self, keys: Keys | None) -> None:
        if keys is None:
            return
        ask = keys if callable(keys) else keys.get

        def answer(_context: int | None, name: bytes) -> int | None:
            try:
                return duplicate(ask(name.decode()))
            except Exception:  # a key that cannot be had is none
                return None

        self.callback = CREDENTIAL(answer)
        library.mur_request_set_credentials(self.handle, self.callback, None)


class _Handle:
    """What both kinds of session share."""

    def __init__(self, request: _Request):
        self._request = request
        self._pointer: int | None = call("mur_session_launch", request.handle)
        self._free = weakref.finalize(self, library.mur_session_free, self._pointer)

        def library_text(name: str) -> str | None:
            return decode(getattr(library, f"mur_session_{name}")(self._pointer))

        #: "ses_..."
        self.id: str = library_text("id") or ""
        #: "host:port" of its door; "" of a script
        self.address: str = library_text("address") or ""
        #: the operator's token of its door, or None
        self.token: str | None = library_text("token")
        #: its work folder and its records, where trace.jsonl is
        self.workdir: str = library_text("workdir") or ""
        self.records: str = library_text("records") or ""

    def _live(self) -> int:
        if not self._pointer:
            raise ValueError("the session is closed")
        return self._pointer

    def _send(self, text: str, context: str | None) -> str:
        data = text.encode()
        return taken(call("mur_session_send", self._live(), data, len(data), encode(context))) or ""

    def _answer(self, task: str, text: str) -> None:
        call("mur_session_answer", self._live(), encode(task), encode(text))

    def _cancel(self, task: str) -> None:
        call("mur_session_cancel", self._live(), encode(task))

    def _next(self, timeout_ms: int) -> Event | None:
        return event_of(library.mur_session_next(self._live(), timeout_ms))

    def _end(self) -> bool:
        return bool(library.mur_session_end(self._live()))

    def _close(self) -> None:
        self._pointer = None
        self._free()  # once, whoever calls it

    @property
    def is_running(self) -> bool:
        return bool(self._pointer) and bool(library.mur_session_is_running(self._pointer))

    @property
    def status(self) -> str | None:
        """How it ended, "ok", "failed", ...; None while it runs."""
        return decode(library.mur_session_status(self._live()))

    @property
    def totals(self) -> dict[str, int]:
        """What it used, once it has ended: turns, input_tokens, output_tokens, duration_ms."""
        return {name: int(library.mur_session_total(self._live(), number)) for name, number in TOTALS.items()}


def _outcome(event: Event, answer: str | None) -> str:
    if event.kind == Kind.TASK_ENDED and event.state != "TASK_STATE_COMPLETED":
        raise TaskFailed(event.state or "", event.text)
    if event.kind == Kind.ENDED:
        raise TaskFailed("TASK_STATE_FAILED", f"the session ended ({event.text}) before its task")
    return answer or ""


class Session(_Handle):
    """A running session, for programs without an event loop. Its methods may be called from any thread."""

    def send(self, text: str, context: str | None = None) -> str:
        """Sends a task and returns its id without waiting."""
        return self._send(text, context)

    def answer(self, task: str, text: str) -> None:
        """Answers what a task asks (:attr:`Kind.QUESTION`)."""
        self._answer(task, text)

    def cancel(self, task: str) -> None:
        self._cancel(task)

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None: none within so many seconds, or the session has ended."""
        return self._next(-1 if timeout is None else int(timeout * 1000))

    def __iter__(self) -> Iterator[Event]:
        """Its events, to the end of the session."""
        while (event := self.next()) is not None:
            yield event
            if event.kind == Kind.ENDED:
                return

    def ask(self, text: str, context: str | None = None) -> str:
        """Sends a task and waits for its answer. TaskFailed when it does not complete."""
        task, answer = self.send(text, context), None
        for event in self:
            if event.kind == Kind.ANSWER and event.task == task:
                answer = event.text
            if event.kind == Kind.ENDED or (event.kind == Kind.TASK_ENDED and event.task == task):
                return _outcome(event, answer)
        raise TaskFailed("TASK_STATE_FAILED", "the session has ended")

    def end(self) -> bool:
        """Lets it wind down; False when it had to be killed."""
        return self._end()

    def close(self) -> None:
        """Ends it and lets go of it."""
        self._close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


class AsyncSession(_Handle):
    """A running session, for programs with an event loop; used from the loop it was launched in."""

    async def send(self, text: str, context: str | None = None) -> str:
        return await asyncio.to_thread(self._send, text, context)

    async def answer(self, task: str, text: str) -> None:
        await asyncio.to_thread(self._answer, task, text)

    async def cancel(self, task: str) -> None:
        await asyncio.to_thread(self._cancel, task)

    async def next(self) -> Event | None:
        """The next event; None once the session has ended."""
        while (event := self._next(0)) is None:
            if not self.is_running and (event := self._next(0)) is None:
                return None
            if event is not None:
                break
            await self._readable()
        return event

    async def _readable(self) -> None:
        loop, fd = asyncio.get_running_loop(), library.mur_session_fd(self._live())
        ready: asyncio.Future[None] = loop.create_future()
        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(fd, wake)
        try:
            await ready
        finally:
            loop.remove_reader(fd)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.next()) is not None:
            yield event
            if event.kind == Kind.ENDED:
                return

    async def ask(self, text: str, context: str | None = None) -> str:
        task, answer = await self.send(text, context), None
        async for event in self:
            if event.kind == Kind.ANSWER and event.task == task:
                answer = event.text
            if event.kind == Kind.ENDED or (event.kind == Kind.TASK_ENDED and event.task == task):
                return _outcome(event, answer)
        raise TaskFailed("TASK_STATE_FAILED", "the session has ended")

    async def end(self) -> bool:
        return await asyncio.to_thread(self._end)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)


def _let_go(starting: asyncio.Future[AsyncSession]) -> None:
    """Ends a session whose launch nobody waits for any more."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result()._close()


class Launch:
    """What :func:`launch` returns: enter it with ``with`` or ``async with``."""

    def __init__(self, request: _Request, task: str | None):
        self._request, self._task = request, task
        self._entered: Any = None

    def __enter__(self) -> Session:
        self._entered = session = Session(self._request)
        try:
            if self._task is not None:
                session.send(self._task)
        except BaseException:
            session.close()
            raise
        return session

    def __exit__(self, *_why: object) -> None:
        self._entered.close()

    async def __aenter__(self) -> AsyncSession:
        starting = asyncio.ensure_future(asyncio.to_thread(AsyncSession, self._request))
        try:
            self._entered = session = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_let_go)
            raise
        try:
            if self._task is not None:
                await session.send(self._task)
        except BaseException:
            await session.close()
            raise
        return session

    async def __aexit__(self, *_why: object) -> None:
        await self._entered.close()


def launch(capsule: Path | None = None, *, task: str | None = None, manifest: str | None = None, package: str | None = None,
           credentials: Keys | None = None, env: Mapping[str, str | None] | None = None, **options: Any) -> Launch:
    """Launches a capsule when the result is entered.

    ``capsule`` is a folder with a murmur.yaml, or the path of one; ``manifest`` its text instead (``capsule`` then says where
    it would be); ``package`` a packed capsule, "scope/name@version". ``task`` is sent at once. ``credentials``: a mapping, or
    a function from a name to a key or None. ``env``: variables over this program's; None takes one away. Further:
    ``workdir``, ``system_prompt``, ``containment``, ``resume``, ``context``, ``deadline`` (seconds), ``task_acceptance``,
    ``after_task``, ``conversation``, ``env_file``, ``program``.
    """
    return Launch(_Request(capsule, {"manifest": manifest, "package": package, "credentials": credentials, "env": env, **options}),
                  task)


def explain(capsule: Path | None = None, **options: Any) -> dict[str, Any]:
    """What the capsule could do on this host; launches nothing. Takes what :func:`launch` takes, but for a task."""
    request = _Request(capsule, options)  # it lives as long as the call
    return dict(json.loads(taken(call("mur_request_explain", request.handle)) or "{}"))


__all__ = ["AsyncSession", "Launch", "MurmurError", "Session", "TaskFailed", "explain", "launch"]
