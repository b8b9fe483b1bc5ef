# SPDX-License-Identifier: Apache-2.0
"""What is to be launched, as the library takes it."""

from __future__ import annotations

import json
import math
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, Unpack

from ._library import CREDENTIAL, call, duplicate, encode, library, taken

Keys = Callable[[str], str | None] | Mapping[str, str]
Path = str | os.PathLike[str]


class Options(TypedDict, total=False):
    """What overrides a capsule's manifest, and what it is launched with."""

    manifest: str | None  # its text; the capsule then says where it would be
    package: str | None  # a packed capsule, "scope/name@version"; without a version the newest that is installed; no folder then
    credentials: Keys | None  # a mapping, or a function from a name to a key or None
    env: Mapping[str, str | None] | None  # variables over this program's; None takes one away
    workdir: Path | None
    system_prompt: str | None
    containment: str | None  # "advisory", "scoped" or "sealed": the least the host must back
    unconfined: bool
    model: str | None
    max_session_tokens: int | None
    deadline: float | None  # seconds from the launch, rounded up
    resume: str | None  # a recorded session
    resume_mode: str | None  # "full" or "compact"
    forget_session: bool
    context: str | None  # a conversation
    task_acceptance: str | None  # the three of the manifest's `lifecycle:`
    after_task: str | None
    conversation: str | None
    bind: str | None
    port: int | None
    public_url: str | None
    secrets_dir: Path | None
    records_store: str | None
    case_id: str | None  # of an evaluation, for hooks that score
    dataset_id: str | None
    formation_member: bool  # takes the place in a formation this program was started for
    env_file: bool  # whether the project's .env is read; it is
    program: Path | None  # which `mur` runs it


TEXTS = ("workdir", "system_prompt", "containment", "model", "resume", "resume_mode", "context", "task_acceptance", "after_task",
         "conversation", "bind", "public_url", "secrets_dir", "records_store", "case_id", "dataset_id", "program")
NUMBERS = ("max_session_tokens", "deadline", "port")
LARGEST = {"port": 65535}
SWITCHES = ("unconfined", "forget_session", "formation_member", "env_file")


class Request:
    """A filled request; kept while sessions of it may ask for keys."""

    def __init__(self, capsule: Path | None, task: str | None, options: Mapping[str, Any]):
        unknown = sorted(set(options) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"unknown: {', '.join(unknown)}")
        self.handle = library.mur_request_new()
        weakref.finalize(self, library.mur_request_free, self.handle)
        self.callback: Any = None
        #: what the function for keys raised last
        self.fault: Exception | None = None
        self._which(capsule, options)
        for name in TEXTS + NUMBERS + SWITCHES:
            value = options.get(name)
            if value is not None:
                self._set(name, value)
        for name, value in (options.get("env") or {}).items():
            library.mur_request_set_variable(self.handle, encode(name), encode(value))
        self._keys(options.get("credentials"))
        if task is not None:
            data = task.encode()
            library.mur_request_set_task(self.handle, data, len(data))

    def _set(self, name: str, value: Any) -> None:
        setter = getattr(library, f"mur_request_set_{name}")
        if name in TEXTS:
            setter(self.handle, encode(value))
        elif name in SWITCHES:
            setter(self.handle, bool(value))
        elif not 0 < value <= LARGEST.get(name, (1 << 64) - 1):
            raise ValueError(f"{name} is {value}")
        else:
            setter(self.handle, math.ceil(value))

    def _which(self, capsule: Path | None, options: Mapping[str, Any]) -> None:
        text, package = options.get("manifest"), options.get("package")
        if package and (text is not None or capsule is not None):
            raise TypeError("a package is named, and another capsule, too")
        if package:
            name, _, version = package.partition("@")
            library.mur_request_set_capsule(self.handle, encode(name), encode(version or None))
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
            except Exception as fault:  # a key that cannot be had is none; the launch, or Python's own hook, says why
                self.fault = fault
                sys.unraisablehook(_Unraisable(fault, ask))  # type: ignore[arg-type]  # what it takes cannot be made by hand
                return None

        self.callback = CREDENTIAL(answer)
        library.mur_request_set_credentials(self.handle, self.callback, None)


class _Unraisable:
    """What sys.unraisablehook takes."""

    def __init__(self, fault: Exception, where: object):
        self.exc_type, self.exc_value, self.exc_traceback = type(fault), fault, fault.__traceback__
        self.err_msg, self.object = "Exception ignored while murmur asked for a key in", where


def explain(capsule: Path | None = None, **options: Unpack[Options]) -> dict[str, Any]:
    """What the capsule could do on this host; launches nothing. Takes what :func:`murmur.launch` takes, but for a task."""
    request = Request(capsule, None, options)  # it lives as long as the call
    return dict(json.loads(taken(call("mur_request_explain", request.handle)) or "{}"))
