# SPDX-License-Identifier: Apache-2.0
"""libmurmur through ctypes: one table of functions, errors as exceptions, events as values.

Where the library is looked for, at the first call that needs it: $MURMUR_LIBRARY, the wheel's own, the system's.
"""

from __future__ import annotations

import ctypes
import enum
import json
import os
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint16, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NATIVE = Path(__file__).resolve().parent / "native"
BROUGHT = ("libcrypto.so.3", "libjansson.so.4", "libcares.so.2")

CREDENTIAL = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
ERROR = POINTER(c_void_p)
TEXT = c_char_p
HANDLE = c_void_p

# name -> (result, arguments)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "mur_version": (TEXT, []),
    "mur_error_code": (TEXT, [HANDLE]),
    "mur_error_message": (TEXT, [HANDLE]),
    "mur_error_hint": (TEXT, [HANDLE]),
    "mur_error_free": (None, [HANDLE]),
    "mur_request_new": (HANDLE, []),
    "mur_request_free": (None, [HANDLE]),
    "mur_request_set_manifest": (None, [HANDLE, TEXT]),
    "mur_request_set_manifest_text": (None, [HANDLE, TEXT, c_size_t, TEXT]),
    "mur_request_set_capsule": (None, [HANDLE, TEXT, TEXT]),
    "mur_request_set_workdir": (None, [HANDLE, TEXT]),
    "mur_request_set_system_prompt": (None, [HANDLE, TEXT]),
    "mur_request_set_containment": (None, [HANDLE, TEXT]),
    "mur_request_set_resume": (None, [HANDLE, TEXT]),
    "mur_request_set_context": (None, [HANDLE, TEXT]),
    "mur_request_set_deadline": (None, [HANDLE, c_uint64]),
    "mur_request_set_task_acceptance": (None, [HANDLE, TEXT]),
    "mur_request_set_after_task": (None, [HANDLE, TEXT]),
    "mur_request_set_conversation": (None, [HANDLE, TEXT]),
    "mur_request_set_env_file": (None, [HANDLE, c_bool]),
    "mur_request_set_variable": (None, [HANDLE, TEXT, TEXT]),
    "mur_request_set_model": (None, [HANDLE, TEXT]),
    "mur_request_set_max_session_tokens": (None, [HANDLE, c_uint64]),
    "mur_request_set_resume_mode": (None, [HANDLE, TEXT]),
    "mur_request_set_forget_session": (None, [HANDLE, c_bool]),
    "mur_request_set_bind": (None, [HANDLE, TEXT]),
    "mur_request_set_port": (None, [HANDLE, c_uint16]),
    "mur_request_set_public_url": (None, [HANDLE, TEXT]),
    "mur_request_set_unconfined": (None, [HANDLE, c_bool]),
    "mur_request_set_task": (None, [HANDLE, TEXT, c_size_t]),
    "mur_request_set_secrets_dir": (None, [HANDLE, TEXT]),
    "mur_request_set_records_store": (None, [HANDLE, TEXT]),
    "mur_request_set_case_id": (None, [HANDLE, TEXT]),
    "mur_request_set_dataset_id": (None, [HANDLE, TEXT]),
    "mur_request_set_formation_member": (None, [HANDLE, c_bool]),
    "mur_request_set_credentials": (None, [HANDLE, CREDENTIAL, HANDLE]),
    "mur_request_set_program": (None, [HANDLE, TEXT]),
    "mur_request_explain": (HANDLE, [HANDLE, ERROR]),
    "mur_session_launch": (HANDLE, [HANDLE, ERROR]),
    "mur_session_free": (None, [HANDLE]),
    "mur_session_id": (TEXT, [HANDLE]),
    "mur_session_address": (TEXT, [HANDLE]),
    "mur_session_token": (TEXT, [HANDLE]),
    "mur_session_token_of": (TEXT, [HANDLE, TEXT]),
    "mur_session_workdir": (TEXT, [HANDLE]),
    "mur_session_records": (TEXT, [HANDLE]),
    "mur_session_send": (HANDLE, [HANDLE, TEXT, c_size_t, TEXT, ERROR]),
    "mur_session_answer": (c_bool, [HANDLE, TEXT, TEXT, ERROR]),
    "mur_session_cancel": (c_bool, [HANDLE, TEXT, ERROR]),
    "mur_session_fd": (c_int, [HANDLE]),
    "mur_session_next": (HANDLE, [HANDLE, c_int64]),
    "mur_session_end": (c_bool, [HANDLE]),
    "mur_session_is_running": (c_bool, [HANDLE]),
    "mur_session_status": (TEXT, [HANDLE]),
    "mur_session_error": (HANDLE, [HANDLE]),
    "mur_session_result": (HANDLE, [HANDLE]),
    "mur_session_total": (c_uint64, [HANDLE, c_int]),
    "mur_event_kind": (c_int, [HANDLE]),
    "mur_event_task": (TEXT, [HANDLE]),
    "mur_event_context": (TEXT, [HANDLE]),
    "mur_event_text": (TEXT, [HANDLE]),
    "mur_event_state": (TEXT, [HANDLE]),
    "mur_event_json": (TEXT, [HANDLE]),
    "mur_event_free": (None, [HANDLE]),
}


class MurmurError(Exception):
    """What the library refused: ``code`` as in ``mur explain``, ``message``, and ``hint`` or None."""

    def __init__(self, code: str, message: str, hint: str | None = None):
        super().__init__(f"{code}: {message}" + (f"\n  hint: {hint}" if hint else ""))
        self.code, self.message, self.hint = code, message, hint

    def __reduce__(self) -> tuple[Any, ...]:  # across processes, too
        return MurmurError, (self.code, self.message, self.hint)


class Kind(enum.IntEnum):
    """What an event is about."""

    STATUS = 1
    TEXT = 2
    THINKING = 3
    TOOL_CALL = 4
    TOOL_RESULT = 5
    QUESTION = 6
    ANSWER = 7
    TASK_ENDED = 8
    LOST = 9
    LOG = 10
    ENDED = 11
    OTHER = 12

    @classmethod
    def _missing_(cls, value: object) -> "Kind":
        return cls.OTHER


@dataclass(frozen=True)
class Event:
    """One thing a session said."""

    kind: Kind
    text: str | None
    task: str | None
    context: str | None
    state: str | None
    json_text: str | None

    @property
    def data(self) -> Any:
        """The A2A event it was read from, or None."""
        return json.loads(self.json_text) if self.json_text else None


def _open() -> ctypes.CDLL:
    named = os.environ.get("MURMUR_LIBRARY")
    own = NATIVE / "libmurmur.so.1"
    if named or not own.exists():
        try:
            return ctypes.CDLL(named or "libmurmur.so.1")
        except OSError as fault:
            raise MurmurError("E-IO-003", f"libmurmur cannot be loaded: {fault}",
                              "install the wheel or the package libmurmur1, or name the file in $MURMUR_LIBRARY") from None
    for name in BROUGHT:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            ctypes.CDLL(str(NATIVE / name), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(own))


def _load() -> ctypes.CDLL:
    library = _open()
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class _Library:
    """The functions, once one is asked for: what needs none works where there is no library."""

    def __getattr__(self, name: str) -> Any:
        loaded = _load()
        for each in FUNCTIONS:
            setattr(self, each, getattr(loaded, each))
        return getattr(loaded, name)


library = _Library()
_c = ctypes.CDLL(None)
_c.strdup.restype, _c.strdup.argtypes = c_void_p, [c_char_p]
_c.free.restype, _c.free.argtypes = None, [c_void_p]


def encode(text: str | os.PathLike[str] | None) -> bytes | None:
    """For the library; names of files that are no UTF-8 come through as they are."""
    if text is None:
        return None
    data = os.fspath(text).encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError("there is a null character in it")
    return data


def decode(text: bytes | None) -> str | None:
    return None if text is None else text.decode(errors="replace")


def version() -> str:
    """The library's version."""
    return decode(library.mur_version()) or ""


def duplicate(text: str | None) -> int | None:
    """A copy the library frees."""
    return _c.strdup(encode(text)) if text is not None else None


def taken(pointer: int | None) -> str | None:
    """A text the caller owns, as a value."""
    if not pointer:
        return None
    try:
        return decode(ctypes.string_at(pointer))
    finally:
        _c.free(pointer)


def call(name: str, *arguments: Any) -> Any:
    """A function that may fail: what it returned, or MurmurError."""
    error = c_void_p()
    result = getattr(library, name)(*arguments, byref(error))
    if error.value:
        try:
            raise error_of(error.value)
        finally:
            library.mur_error_free(error)
    return result


def error_of(pointer: int) -> MurmurError:
    return MurmurError(decode(library.mur_error_code(pointer)) or "", decode(library.mur_error_message(pointer)) or "",
                       decode(library.mur_error_hint(pointer)))


def event_of(pointer: int | None) -> Event | None:
    if not pointer:
        return None
    try:
        read = {name: decode(getattr(library, f"mur_event_{name}")(pointer)) for name in ("text", "task", "context", "state", "json")}
        return Event(Kind(library.mur_event_kind(pointer)), read["text"], read["task"], read["context"], read["state"], read["json"])
    finally:
        library.mur_event_free(pointer)
