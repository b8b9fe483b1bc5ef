# SPDX-License-Identifier: Apache-2.0
"""Sessions, with an event loop and without."""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack

from ._library import Event, Kind, MurmurError, call, decode, encode, error_of, event_of, library, taken
from .request import Options, Path, Request

TOTALS = {"turns": 1, "input_tokens": 2, "output_tokens": 3, "duration_ms": 4}
Box = deque[Event]
T = TypeVar("T")


class TaskFailed(Exception):
    """A task that did not complete: ``state`` is A2A's word, ``task`` its id, ``str()`` what was said of it.

    With TASK_STATE_INPUT_REQUIRED it asked what ``str()`` says, and nobody was there to answer.
    """

    def __init__(self, state: str, said: str | None, task: str | None = None):
        super().__init__(said or state)
        self.state, self.task = state, task

    def __reduce__(self) -> tuple[Any, ...]:  # across processes, too
        return TaskFailed, (self.state, str(self), self.task)


def _fill(future: Future[T], function: Callable[..., T], arguments: tuple[Any, ...]) -> None:
    try:
        future.set_result(function(*arguments))
    except BaseException as fault:  # whoever waits gets it
        future.set_exception(fault)


def _apart(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Runs it on a thread of its own: what waits for a process is in nobody's way, and Ctrl-C reaches who waits for it."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    threading.Thread(target=_fill, args=(future, function, arguments), name="murmur", daemon=True).start()
    return future


class _Post:
    """Who gets which event: those of a task go to whoever follows that task, all go to whoever reads the session. A session that is
    only asked keeps none."""

    def __init__(self) -> None:
        self.rest: Box = deque()
        self.followed: dict[str, Box] = {}
        self.unclaimed: Box = deque()
        self.sending = self.readers = 0
        self.is_over = False

    def sort(self, event: Event) -> None:
        if event.kind == Kind.ENDED:
            self.is_over = True
        if event.task in self.followed:
            self.followed[event.task].append(event)
        elif self.sending and event.task:
            self.unclaimed.append(event)
        if self.readers or event.kind == Kind.ENDED:
            self.rest.append(event)

    def sent(self, task: str | None) -> None:
        """It is followed from now on; what came of it while it was being sent comes first."""
        if task:
            self.followed[task] = deque(event for event in self.unclaimed if event.task == task)
        self.sending -= 1
        if not self.sending:
            self.unclaimed.clear()


class _Handle:
    """What both kinds of session share."""

    def __init__(self, request: Request):
        self._request = request
        try:
            self._pointer: int | None = call("mur_session_launch", request.handle)
        except MurmurError as refused:
            raise refused from request.fault
        self._free = weakref.finalize(self, library.mur_session_free, self._pointer)
        self._free.atexit = False  # see _close_all
        self._post = _Post()
        self._news = threading.Condition()
        self._users = 0
        self._last: dict[str, Any] = {}
        _all.add(self)

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.status or ('running' if self._pointer else 'closed')}>"

    @contextmanager
    def _use(self) -> Iterator[int]:
        """The handle, which nobody frees meanwhile."""
        with self._news:
            pointer = self._pointer
            if not pointer:
                raise ValueError("the session is closed")
            self._users += 1
        try:
            yield pointer
        finally:
            with self._news:
                self._users -= 1
                self._news.notify_all()

    def _send(self, text: str, context: str | None) -> str:
        data = text.encode()
        with self._use() as pointer:
            return taken(call("mur_session_send", pointer, data, len(data), encode(context))) or ""

    def _answer(self, task: str, text: str) -> None:
        with self._use() as pointer:
            call("mur_session_answer", pointer, encode(task), encode(text))

    def _cancel(self, task: str) -> None:
        with self._use() as pointer:
            call("mur_session_cancel", pointer, encode(task))

    def _give_up(self, task: str) -> None:
        """Cancels what nobody waits for any more; it may have ended."""
        try:
            self._cancel(task)
        except (MurmurError, ValueError):
            pass

    def _take(self) -> list[Event]:
        """What waits now."""
        events: list[Event] = []
        try:
            with self._use() as pointer:
                while len(events) < 256 and (event := event_of(library.mur_session_next(pointer, 0))) is not None:
                    events.append(event)
        except ValueError:
            self._post.is_over = True
        return events

    def _end(self) -> bool:
        with self._use() as pointer:
            return bool(library.mur_session_end(pointer))

    def _close(self) -> None:
        try:
            self._end()
        except ValueError:
            return
        with self._news:
            if not self._pointer:
                return
            self._last = self._facts(self._pointer)
            self._pointer = None  # whoever waits has seen the end, or finds it closed now
            while self._users:
                self._news.wait()
        self._free()  # once, whoever calls it

    def _forget(self) -> None:
        self._news = threading.Condition()  # a thread that is not here may have held the other
        self._pointer, self._users, self._post.is_over = None, 0, True
        self._free()

    @staticmethod
    def _facts(pointer: int) -> dict[str, Any]:
        error = library.mur_session_error(pointer)
        return {"status": decode(library.mur_session_status(pointer)),
                "totals": {name: int(library.mur_session_total(pointer, number)) for name, number in TOTALS.items()},
                "error": error_of(error) if error else None,
                "result": taken(library.mur_session_result(pointer))}

    def _fact(self, name: str) -> Any:
        try:
            with self._use() as pointer:
                return self._facts(pointer)[name]
        except ValueError:
            return self._last.get(name)

    def _check_readable(self) -> None:
        if not self._pointer and not self._post.rest:
            raise ValueError("the session is closed")

    def token_of(self, name: str) -> str | None:
        """The token of one of the credentials its manifest declares below `network.authentication`."""
        with self._use() as pointer:
            return decode(library.mur_session_token_of(pointer, encode(name)))

    @property
    def is_running(self) -> bool:
        try:
            with self._use() as pointer:
                return bool(library.mur_session_is_running(pointer))
        except ValueError:
            return False

    @property
    def status(self) -> str | None:
        """How it ended, "ok", "failed", ...; None while it runs."""
        text: str | None = self._fact("status")
        return text

    @property
    def error(self) -> MurmurError | None:
        """Why it ended, where it failed."""
        error: MurmurError | None = self._fact("error")
        return error

    @property
    def result(self) -> str | None:
        """Its last whole answer, of whichever task; None: it has given none."""
        text: str | None = self._fact("result")
        return text

    @property
    def totals(self) -> dict[str, int]:
        """What it used, once it has ended: turns, input_tokens, output_tokens, duration_ms."""
        return dict(self._fact("totals") or dict.fromkeys(TOTALS, 0))


_all: weakref.WeakSet[_Handle] = weakref.WeakSet()


def _forget_all() -> None:
    """In a fork: its copies of the descriptors would hide this process's death from the sessions."""
    for handle in list(_all):
        handle._forget()


def _close_all() -> None:
    """At the end of the program, while threads may still be in calls of the library."""
    for handle in list(_all):
        handle._close()


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)


class _Outcome:
    """What the events of a task come to."""

    def __init__(self) -> None:
        self.answer: str | None = None
        self.last: Event | None = None

    def take(self, event: Event) -> None:
        self.last = event
        if event.kind == Kind.ANSWER:
            self.answer = event.text

    def text(self) -> str:
        last = self.last
        if last is None or last.kind != Kind.TASK_ENDED:
            raise TaskFailed("TASK_STATE_FAILED", "the session ended before its task", last.task if last else None)
        if last.state != "TASK_STATE_COMPLETED":
            raise TaskFailed(last.state or "", last.text, last.task)
        return self.answer or ""


def _asks(event: Event) -> TaskFailed:
    return TaskFailed("TASK_STATE_INPUT_REQUIRED", event.text, event.task)


class Session(_Handle):
    """A running session, for programs without an event loop. Its methods may be called from any thread."""

    _is_taking = False

    def send(self, text: str, context: str | None = None) -> str:
        """Sends a task and returns its id without waiting."""
        return self._send(text, context)

    def answer(self, task: str, text: str) -> None:
        """Answers what a task asks (:attr:`Kind.QUESTION`)."""
        self._answer(task, text)

    def cancel(self, task: str) -> None:
        self._cancel(task)

    def _await(self, box: Box, timeout: float | None) -> Event | None:
        """The next of a box. One thread takes for all; a signal's handler runs while it waits."""
        until = None if timeout is None else time.monotonic() + timeout
        is_late = False
        while True:
            with self._news:
                if box:
                    return box.popleft()
                if self._post.is_over or is_late:
                    return None
                left = None if until is None else max(0.0, until - time.monotonic())
                is_late = left == 0
                if self._is_taking:
                    self._news.wait(left)
                    continue
                self._is_taking = True
            events: list[Event] = []
            try:
                self._wait_readable(left)
                events = self._take()
            finally:
                with self._news:
                    for event in events:
                        self._post.sort(event)
                    self._is_taking = False
                    self._news.notify_all()

    def _wait_readable(self, timeout: float | None) -> None:
        try:
            with self._use() as pointer:
                poll = select.poll()
                poll.register(library.mur_session_fd(pointer), select.POLLIN)
                poll.poll(None if timeout is None else timeout * 1000)
        except ValueError:  # it is closed: what follows says so
            pass

    def _read(self, change: int) -> None:
        with self._news:
            self._post.readers += change

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None: none within so many seconds, or the session has ended."""
        self._check_readable()
        self._read(1)
        try:
            return self._await(self._post.rest, timeout)
        finally:
            self._read(-1)

    def __iter__(self) -> Iterator[Event]:
        """Its events, to the end of the session."""
        self._read(1)
        try:
            while (event := self._await(self._post.rest, None)) is not None:
                yield event
                if event.kind == Kind.ENDED:
                    return
        finally:
            self._read(-1)

    def stream(self, text: str, context: str | None = None) -> Generator[Event, None, None]:
        """Sends a task and gives its events, to its end. Leaving early cancels the task."""
        with self._news:
            self._post.sending += 1
        sent: str | None = None
        try:
            task = sent = self._send(text, context)
        finally:
            with self._news:
                self._post.sent(sent)
        box, is_over = self._post.followed[task], False
        try:
            while not is_over and (event := self._await(box, None)) is not None:
                is_over = event.kind == Kind.TASK_ENDED
                yield event
            is_over = True
        finally:
            with self._news:
                del self._post.followed[task]
            if not is_over:
                self._give_up(task)

    def ask(self, text: str, context: str | None = None, answer: Callable[[Event], str] | None = None) -> str:
        """Sends a task and waits for its answer. TaskFailed when it does not complete.

        ``answer`` is called with what the task asks, a question of its own or an approval it needs, and returns what is answered;
        without it a task that asks is cancelled, and TaskFailed says what it asked.
        """
        outcome, events = _Outcome(), self.stream(text, context)
        try:
            for event in events:
                outcome.take(event)
                if event.kind == Kind.QUESTION:
                    if answer is None:
                        raise _asks(event)
                    self._answer(event.task or "", answer(event))
        finally:
            events.close()
        return outcome.text()

    def end(self) -> bool:
        """Lets it wind down; False when it had to be killed."""
        return _apart(self._end).result()

    def close(self) -> None:
        """Ends it and lets go of it. How it ended stays known."""
        _apart(self._close).result()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


class AsyncSession(_Handle):
    """A running session, for programs with an event loop; its coroutines run in the loop it was launched in."""

    def __init__(self, request: Request, loop: asyncio.AbstractEventLoop):
        super().__init__(request)
        self._loop = loop
        self._waiting: set[asyncio.Future[None]] = set()

    async def send(self, text: str, context: str | None = None) -> str:
        """Sends a task and returns its id without waiting."""
        return await asyncio.wrap_future(_apart(self._send, text, context))

    async def answer(self, task: str, text: str) -> None:
        """Answers what a task asks (:attr:`Kind.QUESTION`)."""
        await asyncio.wrap_future(_apart(self._answer, task, text))

    async def cancel(self, task: str) -> None:
        await asyncio.wrap_future(_apart(self._cancel, task))

    async def _await(self, box: Box) -> Event | None:
        """The next of a box."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("this session belongs to another event loop: launch one in this")
        while not box and not self._post.is_over:
            events = self._take()
            for event in events:
                self._post.sort(event)
            if events:
                self._wake()
            elif not self._post.is_over:
                await self._readable()
        return box.popleft() if box else None

    def _wake(self) -> None:
        for ready in self._waiting:
            if not ready.done():
                ready.set_result(None)

    async def _readable(self) -> None:
        """Until something may have come. A copy of the descriptor, so that any number may wait, and it may be closed meanwhile."""
        try:
            with self._use() as pointer:
                fd = os.dup(library.mur_session_fd(pointer))
        except ValueError:
            return
        ready: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(ready)
        self._loop.add_reader(fd, self._wake)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            self._loop.remove_reader(fd)
            os.close(fd)

    async def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None: none within so many seconds, or the session has ended."""
        self._check_readable()
        self._post.readers += 1
        try:
            async with asyncio.timeout(timeout):
                return await self._await(self._post.rest)
        except TimeoutError:
            return None
        finally:
            self._post.readers -= 1

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Its events, to the end of the session."""
        self._post.readers += 1
        try:
            while (event := await self._await(self._post.rest)) is not None:
                yield event
                if event.kind == Kind.ENDED:
                    return
        finally:
            self._post.readers -= 1

    async def _follow(self, text: str, context: str | None) -> str:
        """Sends a task whose events are kept. One that nobody waits for by then is cancelled."""
        self._post.sending += 1
        sending, sent = _apart(self._send, text, context), None
        try:
            task = sent = await asyncio.wrap_future(sending)
        except asyncio.CancelledError:
            sending.add_done_callback(self._unsend)
            raise
        finally:
            self._post.sent(sent)
        return task

    def _unsend(self, sent: Future[str]) -> None:
        if sent.exception() is None:
            self._give_up(sent.result())

    async def stream(self, text: str, context: str | None = None) -> AsyncGenerator[Event, None]:
        """Sends a task and gives its events, to its end. Leaving early, or being cancelled, cancels the task."""
        task = await self._follow(text, context)
        box, is_over = self._post.followed[task], False
        try:
            while not is_over and (event := await self._await(box)) is not None:
                is_over = event.kind == Kind.TASK_ENDED
                yield event
            is_over = True
        finally:
            del self._post.followed[task]
            if not is_over:
                _apart(self._give_up, task)

    async def ask(self, text: str, context: str | None = None,
                  answer: Callable[[Event], str | Awaitable[str]] | None = None) -> str:
        """Sends a task and waits for its answer; cancelled, it cancels the task. TaskFailed when that does not complete.

        ``answer``, a function or a coroutine, is called with what the task asks and returns what is answered; without it a task
        that asks is cancelled, and TaskFailed says what it asked.
        """
        outcome, events = _Outcome(), self.stream(text, context)
        try:
            async for event in events:
                outcome.take(event)
                if event.kind == Kind.QUESTION:
                    if answer is None:
                        raise _asks(event)
                    said = answer(event)
                    await self.answer(event.task or "", said if isinstance(said, str) else await said)
        finally:
            await events.aclose()
        return outcome.text()

    async def end(self) -> bool:
        """Lets it wind down; False when it had to be killed."""
        return await asyncio.wrap_future(_apart(self._end))

    async def close(self) -> None:
        """Ends it and lets go of it. How it ended stays known."""
        await asyncio.wrap_future(_apart(self._close))

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_why: object) -> None:
        await self.close()


def _let_go(starting: Future[Any]) -> None:
    """Ends a session whose launch nobody waits for any more."""
    if starting.exception() is None:
        starting.result()._close()


class Launch:
    """What :func:`launch` returns. ``with`` and ``async with`` launch and end; :meth:`start` and ``await`` only launch."""

    def __init__(self, request: Request):
        self._request = request
        self._entered: Any = None

    def __repr__(self) -> str:
        return "<Launch under way>" if self._entered is not None else "<Launch: with, async with, await or .start() launches it>"

    def start(self) -> Session:
        """Launches; the session ends with its ``close()``, at the latest with this program."""
        starting = _apart(Session, self._request)
        try:
            return starting.result()
        except BaseException:  # of the launch, or Ctrl-C meanwhile
            starting.add_done_callback(_let_go)
            raise

    async def _start(self) -> AsyncSession:
        starting = _apart(AsyncSession, self._request, asyncio.get_running_loop())
        try:
            return await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_let_go)
            raise

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._start().__await__()

    def _check_free(self) -> None:
        if self._entered is not None:
            raise RuntimeError("this launch is under way: call murmur.launch once more for a second session")

    def __enter__(self) -> Session:
        self._check_free()
        self._entered = session = self.start()
        return session

    def __exit__(self, *_why: object) -> None:
        session, self._entered = self._entered, None
        session.close()

    async def __aenter__(self) -> AsyncSession:
        self._check_free()
        self._entered = session = await self._start()
        return session

    async def __aexit__(self, *_why: object) -> None:
        session, self._entered = self._entered, None
        await session.close()


def launch(capsule: Path | None = None, *, task: str | None = None, **options: Unpack[Options]) -> Launch:
    """Launches a capsule when the result is entered, started or awaited.

    ``capsule`` is a folder with a murmur.yaml, or the path of one; without it this folder. ``task`` is begun at once. What else
    there is says :class:`Options`.
    """
    return Launch(Request(capsule, task, options))
