# SPDX-License-Identifier: Apache-2.0
#
# Two thousand answers of providers, made from the wire forms: dressed otherwise (which must change nothing), cut (which may
# lose only what was not finished), and with their JSON bent. The same seed gives the same answers.

import json
import random
from dataclasses import dataclass

from .provider_forms import PROVIDERS, Turn, dumped

EVENTS = "text/event-stream"
LIST = ("files", {"action": "list"})
TURNS = {
    "text": Turn(text="naïve 漢字 🦉 and on"), "call": Turn(calls=[LIST]),
    "two calls": Turn(text="I look", calls=[LIST, ("files", {"action": "read", "path": "é🦉.txt"})]),
    "thought": Turn(thinking="let me 漢 see", text="so"), "cut": Turn(text="half", stop="cap"),
}


@dataclass
class Case:
    provider: object
    kind: str  # "dressed", "cut", "broken" or "bent"
    name: str
    body: bytes
    content_type: str = EVENTS
    status: int = 200
    piece: int = 0
    base: str = ""  # the turn it was made from
    is_stream: bool = True
    must: str | None = None  # "same": as the base; "unfinished": no answer; None: anything of the list


def base_body(provider, name, stream):
    turn = TURNS[name]
    if turn.stop == "cap":
        turn = Turn(text=turn.text, stop=provider.cut_stop)
    return provider.stream(turn) if stream else provider.whole(turn)


# --- Dressed otherwise -------------------------------------------------------------------------------------------------


def dressings(body):
    yield "as it is", body, EVENTS
    yield "crlf", body.replace(b"\n", b"\r\n"), EVENTS
    yield "cr", body.replace(b"\n", b"\r"), EVENTS
    yield "mark", b"\xef\xbb\xbf" + body, EVENTS
    yield "comments", b": hello\n\n" + body.replace(b"\n\n", b"\n\n: idle\n\n"), EVENTS
    yield "idle events", body.replace(b"\n\n", b"\n\nevent: ping\ndata: ping\n\n"), EVENTS
    yield "empty events", body.replace(b"\n\n", b"\n\ndata:\n\n"), EVENTS
    yield "ids", body.replace(b"data: ", b"id: 7\nretry: 3\ndata: "), EVENTS
    yield "no blanks", body.replace(b"data: ", b"data:"), EVENTS
    yield "no last line", body.rstrip(b"\n"), EVENTS
    yield "no names", b"".join(line + b"\n" for line in body.split(b"\n") if not line.startswith(b"event:")), EVENTS
    for content_type in ("", "text/plain", "application/json", "TEXT/EVENT-STREAM; charset=utf-8", "application/x-ndjson"):
        yield f"as {content_type or 'nothing'}", body, content_type


# --- Cut ---------------------------------------------------------------------------------------------------------------


def finish_of(provider, body):
    """(first byte from which the answer is complete, first byte at which it may be)."""
    word = {"anthropic": b'"message_delta"', "openai": b'"finish_reason": "', "responses": b'"response": {"id": "resp_1", "object": '
            b'"response", "model"'}[provider.name]
    at = body.index(word)
    return body.index(b"\n", at), at


# --- Bent --------------------------------------------------------------------------------------------------------------


ODD = [None, "", 0, -1, True, [], {}, 1.5, "x", "null", [None], 10 ** 30, "\ud800", "\x00", [[[]]], {"type": None}]


def nodes(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from nodes(value[key], path + (key,))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, path + (index,))


def bend(value, path, how, rng):
    """A copy with one thing at `path` changed."""
    value = json.loads(json.dumps(value))
    if not path:
        return rng.choice(ODD) if how == "replaced" else value
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    key = path[-1]
    if how == "dropped":
        del holder[key]
    elif how == "nulled":
        holder[key] = None
    elif how == "replaced":
        holder[key] = rng.choice(ODD)
    elif how == "doubled":
        holder[key] = [holder[key], holder[key]]
    elif how == "renamed" and isinstance(key, str):
        holder[key.upper() if rng.random() < 0.5 else key.title()] = holder.pop(key)
    elif how == "wrapped":
        holder[key] = {"value": holder[key]}
    elif how == "as text":
        holder[key] = json.dumps(holder[key])
    return value


def bent_events(events, rng):
    """The events with one or two things changed."""
    events = list(events)
    for _ in range(rng.choice([1, 1, 1, 2])):
        at = rng.randrange(len(events))
        how = rng.choice(["dropped", "nulled", "replaced", "doubled", "renamed", "wrapped", "as text", "gone", "twice", "moved", "swapped"])
        if how == "gone" and len(events) > 1:
            del events[at]
        elif how == "twice":
            events.insert(at, events[at])
        elif how == "moved":
            events.insert(rng.randrange(len(events)), events.pop(at))
        elif how == "swapped":
            other = rng.randrange(len(events))
            events[at], events[other] = events[other], events[at]
        elif isinstance(events[at], dict):
            paths = [path for path in nodes(events[at]) if path]
            if paths:
                events[at] = bend(events[at], rng.choice(paths), how, rng)
    return events


def bent_bytes(body, rng):
    body = bytearray(body)
    for _ in range(rng.choice([1, 2, 5])):
        at = rng.randrange(len(body))
        how = rng.choice(["flip", "drop", "insert", "repeat"])
        if how == "flip":
            body[at] = rng.randrange(256)
        elif how == "drop":
            del body[at:at + rng.randrange(1, 20)]
        elif how == "insert":
            body[at:at] = bytes(rng.choice([b"\n\n", b"\xff", b"\x00", b'"', b"}", b"data: ", b"\r", b"{}", b"[DONE]"]))
        else:
            body[at:at] = body[at:at + rng.randrange(1, 40)]
        if not body:
            break
    return bytes(body)


def rendered(events, is_chat):
    lines = [b"data: " + (event if isinstance(event, bytes) else dumped_odd(event)) for event in events]
    return b"".join(line + b"\n\n" for line in [*lines, *([b"data: [DONE]"] if is_chat else [])])


def dumped_odd(value):
    """Half pairs as the escapes they come as."""
    return json.dumps(value).encode()


def parsed_events(body):
    found = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(data) for data in found if data != b"[DONE]"]


# --- All of them -------------------------------------------------------------------------------------------------------


def cases(count=2000, seed=20261130):
    rng = random.Random(seed)
    made = []
    for provider in PROVIDERS:
        for name in TURNS:
            stream = base_body(provider, name, True)
            for how, body, content_type in dressings(stream):
                for piece in (0, 1, 7):
                    made.append(Case(provider, "dressed", f"{how}, pieces of {piece}", body, content_type, piece=piece, base=name,
                                     must="same"))
            whole = base_body(provider, name, False)
            for how, body in (("as it is", whole), ("mark", b"\xef\xbb\xbf" + whole), ("blank", b"\r\n\t " + whole + b"\n\n"),
                              ("one event", b"data: " + whole + b"\n\n")):
                for content_type in ("application/json", EVENTS, ""):
                    is_event = how == "one event"
                    if is_event and provider.name == "openai":
                        body = body + b"data: [DONE]\n\n"
                    made.append(Case(provider, "dressed", f"whole, {how}", body, content_type, piece=rng.choice([0, 1]), base=name,
                                     is_stream=False, must="same"))
            complete, maybe = finish_of(provider, stream)
            for cut in [rng.randrange(len(stream)) for _ in range(12)] + [0, 1, 5, complete - 1, complete, complete + 1]:
                must = "same" if cut >= complete else "unfinished" if cut < maybe else None
                made.append(Case(provider, "cut", f"cut at {cut}", stream[:cut], base=name, must=must))
                broken_must = "same" if cut >= complete + 2 else "unfinished" if cut < maybe else None
                made.append(Case(provider, "broken", f"broken at {cut}", stream[:cut], base=name, must=broken_must))
            for cut in [rng.randrange(1, len(whole)) for _ in range(4)]:
                made.append(Case(provider, "cut", f"whole cut at {cut}", whole[:cut], "application/json", base=name,
                                 is_stream=False, must="unfinished"))
    while len(made) < count:
        provider, name = rng.choice(PROVIDERS), rng.choice(list(TURNS))
        is_stream = rng.random() < 0.7
        base = base_body(provider, name, is_stream)
        if rng.random() < 0.25:
            body = bent_bytes(base, rng)
        elif is_stream:
            body = rendered(bent_events(parsed_events(base), rng), provider.name == "openai")
        else:
            value = json.loads(base)
            how = rng.choice(["dropped", "nulled", "replaced", "doubled", "renamed", "wrapped", "as text"])
            body = dumped_odd(bend(value, rng.choice([path for path in nodes(value) if path]), how, rng))
        made.append(Case(provider, "bent", f"bent {len(made)}", body, EVENTS if is_stream else "application/json",
                         status=rng.choice([200] * 8 + [201, 400, 429, 503]), piece=rng.choice([0, 0, 1, 3]), base=name,
                         is_stream=is_stream))
    return made
