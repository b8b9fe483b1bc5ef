# SPDX-License-Identifier: Apache-2.0
#
# The bundled tools std/fetch and std/json as a model meets them.

import json

import pytest

from tests.support import tool_calls, warm_forms
from tests.support.lab import BUILD
from tests.support.model_server import Reply


def ask(lab, tool, *inputs, **how):
    warm_forms.lend(lab)
    told = tool_calls.ask(lab, tool, *inputs, **how)
    warm_forms.keep(lab)
    return told


# --- fetch -------------------------------------------------------------------------------------------------------------


def page(body, content_type="text/html; charset=utf-8", **how):
    return Reply(body=body if isinstance(body, bytes) else body.encode(), content_type=content_type, **how)


def moved(place, status=302):
    return page("", status=status, headers={"location": place})


def fetch(lab, model, *inputs, replies=(), allow=None, **how):
    """The calls, each to a path of the provider; what the model read of each."""
    model.script(*replies)
    inputs = [{**(value if isinstance(value, dict) else {"url": value})} for value in inputs]
    for value in inputs:
        if value["url"].startswith("/"):
            value["url"] = model.url + value["url"]
    network = {"network": {"allow": [model.url] if allow is None else allow}}
    return ask(lab, "fetch", *inputs, capabilities=network, **how)


PAGE = """<!DOCTYPE html><html><head><title>A &amp; B
 page</title><style>p { color: red }</style><script>var a = "<p>no</p>";</script></head>
<body><!-- <p>hidden</p> --><nav><a href="/home">Home</a> <a href="#top">Top</a></nav>
<h1>Heading &#8212; <em>one</em></h1><p>Some   text
 with <b>bold</b> &eacute;&nbsp;&euro; &#x1F989; &unknown; 1 &lt; 2 & more.<br>Next <a href="sub/x.html?a=1&amp;b=2">a link</a>.</p>
<ul><li>one<li>two<ul><li>deep</li></ul></li></ul><ol><li>first</li><li>second</li></ol>
<table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre>
  keep
    this</pre><img src="i.png" alt="An owl"><svg><text>no</text></svg><hr><p>End</p></body></html>"""

SHOWN = """A & B page

Home <{url}/home> Top

# Heading \u2014 one

Some text with bold \u00e9 \u20ac \U0001f989 &unknown; 1 < 2 & more.
Next a link <{url}/dir/sub/x.html?a=1&b=2>.

- one
- two
  - deep

1. first
2. second

k | v
a | 1


  keep
    this

[image: An owl]

---

End"""


@pytest.mark.parametrize("chunk_bytes", [None, 1])
def test_std_fetch_shows_a_page_as_text(lab, model, chunk_bytes):
    answers, _work, session = fetch(lab, model, "/dir/page.html", replies=[page(PAGE, chunk_bytes=chunk_bytes)])

    assert answers == [(False, SHOWN.format(url=model.url))]
    assert session.trace.one("tool_call")["state_effect"] == "read"
    assert model.requests[0].method == "GET" and "text/html" in model.requests[0].headers["accept"]


def test_std_fetch_shows_other_text_as_it_is_and_raw_pages(lab, model):
    replies = [page('{"a":  "<b>"}', "application/json"), page("<p>x</p>"), page("plain ü", "text/plain"),
               page("no type", ""), page("", "text/plain")]
    answers, _work, _session = fetch(lab, model, "/a", {"url": "/b", "raw": True}, "/c", "/d", "/e", replies=replies)

    assert answers == [(False, '{"a":  "<b>"}'), (False, "<p>x</p>"), (False, "plain ü"), (False, "no type"), (False, "[empty]")]


def test_std_fetch_reads_western_pages_of_any_age(lab, model):
    western = "café – “x” €".encode("cp1252")
    replies = [page(western, "text/plain; charset=ISO-8859-1"), page(western, "text/plain"),
               page(b"<meta charset=windows-1252><p>" + western, "text/html"), page(b"bad \xff", "text/plain; charset=utf-8"),
               page(b"x", "text/plain; charset=shift_jis")]
    answers, _work, _session = fetch(lab, model, "/1", "/2", "/3", "/4", "/5", replies=replies)

    assert [text for _, text in answers[:3]] == ["café – “x” €"] * 3
    assert answers[3] == (False, "bad \ufffd")
    assert answers[4] == (True, f"{model.url}/5 is written in shift_jis, which is not read here")


def test_std_fetch_takes_broken_pages(lab, model):
    odd = ["<p", "<a href=", "</", "<!--", "<script>never closed", "&", "&#", "&#x110000;&#0;", "<li></li></ul></ul>x",
           "<p title='a>b'>y", "<" * 5000, "<ul>" * 3000 + "<li>deep", "\ud83e".encode("utf-8", "surrogatepass").decode("latin-1")]
    answers, _work, _session = fetch(lab, model, *["/"] * len(odd), replies=[page(text) for text in odd])

    assert [is_error for is_error, _ in answers] == [False] * len(odd)
    assert answers[7][1] == "\ufffd\ufffd" and answers[8][1].endswith("x") and answers[9][1] == "y"
    assert answers[11][1].strip() == "- deep"


def test_std_fetch_follows_redirects_but_not_for_ever(lab, model):
    replies = [moved("/two"), moved("three?x=1", 301), moved("//127.0.0.1:1/"), page("unused")]
    answers, _work, _session = fetch(lab, model, "/one/a", replies=replies[:2] + [page("there", "text/plain")])
    assert answers == [(False, "there")]
    assert [request.path for request in model.requests] == ["/one/a", "/two", "/three?x=1"]


def test_std_fetch_stops_a_circle(lab, model):
    answers, _work, _session = fetch(lab, model, "/", replies=[moved("/")] * 6)

    assert answers == [(True, f"{model.url}/ leads on more than 5 times")]


def test_std_fetch_reaches_only_what_is_allowed_redirects_included(lab, model):
    other = lab.model_server()
    answers, _work, _session = fetch(lab, model, f"{other.url}/secret", "/a", "ftp://x/", {"url": "nonsense"},
                                     replies=[moved(f"{other.url}/secret")])

    denied = f"{other.url}/secret may not be reached: it is not in this tool's network.allow"
    assert answers[:2] == [(True, denied), (True, denied)]
    assert [is_error for is_error, _ in answers[2:]] == [True, True]
    assert other.requests == []


def test_std_fetch_without_a_grant_reaches_nothing(lab, model):
    answers, _work, _session = fetch(lab, model, "/", allow=[])

    assert answers[0][0] is True and model.requests == []


def test_std_fetch_tells_a_refusal_of_the_server(lab, model):
    answers, _work, _session = fetch(lab, model, "/a", "/b", replies=[
        page("<title>Gone</title><p>It is gone.</p>", status=404), page(b"\0\1", "application/octet-stream", status=500)])

    assert answers[0] == (True, f"{model.url}/a answered 404:\nGone\n\nIt is gone.")
    assert answers[1][0] is True and answers[1][1].startswith(f"{model.url}/b answered 500")


def test_std_fetch_tells_a_connection_that_breaks(lab, model):
    answers, _work, _session = fetch(lab, model, "/a", "/b", replies=[
        page("x" * 1000, reset_after_bytes=0), page("x" * 1000, reset_after_bytes=500)])

    assert [is_error for is_error, _ in answers] == [True, True]


def test_std_fetch_shows_long_texts_in_parts(lab, model):
    text = "0123456789abcdé\n" * 6000
    answers, _work, session = fetch(lab, model, "/", {"url": "/", "offset": 65536}, {"url": "/", "offset": 10**9},
                                    replies=[page(text, "text/plain")] * 3)

    first, rest, beyond = [part for _, part in answers]
    assert first.endswith(f"[cut: go on with offset 65535, of {len(text.encode())}]") or "go on with offset 65536" in first
    assert len(first.encode()) < 66_000 and rest.endswith("0123456789abcdé")
    assert beyond == "[nothing beyond this offset]"
    assert session.trace.all("tool_call")[0]["status"] == "ok"


def test_std_fetch_bounds_size_and_type_by_its_config(lab, model):
    config = {"max_bytes": 1000, "types": ["text/plain", "*+json"], "headers": {"x-lab": "yes"}}
    answers, work, _session = fetch(
        lab, model, "/a", "/b", "/c", {"url": "/d", "save_as": "d"}, config=config, replies=[
            page("x" * 5000, "text/plain"), page("<p>x"), page("{}", "application/ld+json"), page("x" * 5000, "text/plain")])

    assert answers == [
        (False, "x" * 1000 + "\n[no more than 1000 bytes are read]"),
        (True, f"{model.url}/b is text/html, which this tool may not fetch (config.types)"), (False, "{}"),
        (True, f"{model.url}/d is larger than 1000 bytes; nothing was saved")]
    assert not (work / "d").exists()
    assert model.requests[0].headers["x-lab"] == "yes"


def test_std_fetch_saves_what_is_no_text(lab, model):
    data = bytes(range(256)) * 5000
    answers, work, session = fetch(lab, model, "/a", {"url": "/a", "save_as": "new/a.bin"}, {"url": "/a", "save_as": "../a.bin"},
                                   replies=[page(data, "image/png")] * 3)

    assert answers[0] == (True, f"{model.url}/a is image/png, no text; give save_as to keep it in a file")
    assert answers[1] == (False, f"saved new/a.bin: {len(data)} bytes of image/png")
    assert answers[2][0] is True and not (work.parent / "a.bin").exists()
    assert (work / "new/a.bin").read_bytes() == data
    assert session.trace.all("tool_call")[1]["resource_id"] == "new/a.bin"


# --- json --------------------------------------------------------------------------------------------------------------

STORE = {"store": {"book": [{"title": "A", "price": 8.95, "isbn": "1"}, {"title": "B", "price": 12, "tags": ["x", "y"]},
                            {"title": "ü/~", "price": 22.99}], "open": True, "a/b~c": None}}


def query(lab, document, *queries, **more):
    text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)
    answers, _work, _session = ask(lab, "json", *({"path": "a.json", "query": text_of, **more} for text_of in queries),
                                   files={"a.json": text})
    return answers


@pytest.mark.parametrize("style", ["$.store.book[1].price", ".store.book[1].price", "store.book[1].price", "/store/book/1/price",
                                   "$['store'][\"book\"][-2]['price']"])
def test_std_json_finds_one_value_however_it_is_named(lab, style):
    assert query(lab, STORE, style) == [(False, "12")]


def test_std_json_finds_many_values_and_says_where_they_are(lab):
    queries = {
        "$.store.book[*].title": '/store/book/0/title "A"\n/store/book/1/title "B"\n/store/book/2/title "ü/~"',
        "$..price": "/store/book/0/price 8.95\n/store/book/1/price 12\n/store/book/2/price 22.99",
        "$.store.book[1:].price": "/store/book/1/price 12\n/store/book/2/price 22.99",
        "$.store.book[::2].price": "/store/book/0/price 8.95\n/store/book/2/price 22.99",
        "$.store.book[0,2]['title','price']": '/store/book/0/title "A"\n/store/book/0/price 8.95\n'
                                              '/store/book/2/title "ü/~"\n/store/book/2/price 22.99',
        "$.store.book[?@.isbn].title": '/store/book/0/title "A"',
        "$.store.book[?(@.price > 10)].title": '/store/book/1/title "B"\n/store/book/2/title "ü/~"',
        "$.store.book[?@.title == 'B'].tags": '/store/book/1/tags ["x","y"]',
        "$.store.book[?@.tags[0] == \"x\"].price": "/store/book/1/price 12",
        "$.store.book[?@.isbn != '1'].title": '/store/book/1/title "B"\n/store/book/2/title "ü/~"',
        "$.store['a/b~c','open']": "/store/a~1b~0c null\n/store/open true",
        "/store/a~1b~0c": "null",
    }

    assert [text for _, text in query(lab, STORE, *queries)] == list(queries.values())


def test_std_json_shows_the_whole_and_its_shape(lab):
    answers, _work, _session = ask(lab, "json", {"path": "a.json"}, {"path": "a.json", "depth": 2}, {"path": "b.json"},
                                   files={"a.json": json.dumps({"a": {"b": [1, 2], "c": {}}, "d": []}), "b.json": " 7 \n"})

    assert answers[0] == (False, json.dumps({"a": {"b": [1, 2], "c": {}}, "d": []}, indent=2))
    assert answers[1] == (False, '{\n  "a": {\n    "b": [2 items],\n    "c": {}\n  },\n  "d": []\n}')
    assert answers[2] == (False, "7")


def test_std_json_says_what_is_wrong_with_a_query_or_a_file(lab):
    answers, _work, _session = ask(
        lab, "json", {"path": "a.json", "query": "$.b"}, {"path": "a.json", "query": "$.a["}, {"path": "a.json", "query": "$.a[x]"},
        {"path": "a.json", "query": "$.a[?@.b && @.c]"}, {"path": "bad.json"}, {"path": "absent.json"}, {"path": "../a.json"},
        {"path": ""}, {"path": "a.json", "query": "$", "merge": {}}, {"path": "a.json", "query": "$..*.."},
        files={"a.json": '{"a": [1]}', "bad.json": '{"a": 1,\n "b": [1 2]}'})

    assert [is_error for is_error, _ in answers] == [True] * 10
    assert answers[0][1] == "a.json: nothing is at $.b"
    assert "at character 5 of $.a[" in answers[1][1]
    assert answers[4][1] == "bad.json is no JSON that is read here: line 2, column 10"
    assert answers[5][1] == "absent.json: No such file or directory"
    assert answers[8][1] == "give one of query, patch and merge"


def change(lab, text, *inputs):
    answers, work, session = ask(lab, "json", *({"path": "a.json", **value} for value in inputs), files={"a.json": text})
    return answers, (work / "a.json").read_text(), session


def test_std_json_patches_and_keeps_what_it_does_not_touch(lab):
    text = '{\n\t"keep": {"a":1.0,  "b": [1,2 , 3]},\n\t"list": [1, 2],\n\t"long": [\n\t\t"x"\n\t],\n\t"gone": 1e5\n}\n'
    answers, after, session = change(lab, text, {"patch": [
        {"op": "test", "path": "/keep/a", "value": 1}, {"op": "add", "path": "/list/-", "value": 3},
        {"op": "add", "path": "/list/0", "value": {"n": []}}, {"op": "replace", "path": "/long/0", "value": "y"},
        {"op": "add", "path": "/long/-", "value": {"deep": [True, None]}}, {"op": "remove", "path": "/gone"},
        {"op": "copy", "from": "/keep/b", "path": "/copy"}, {"op": "move", "from": "/list/1", "path": "/moved~1~0"}]})

    assert answers == [(False, "a.json: 8 operations done")]
    assert after == ('{\n\t"keep": {"a":1.0,  "b": [1,2 , 3]},\n\t"list": [{"n": []}, 2, 3],\n\t"long": [\n\t\t"y",\n\t\t{\n\t\t\t'
                     '"deep": [\n\t\t\t\ttrue,\n\t\t\t\tnull\n\t\t\t]\n\t\t}\n\t],\n\t"copy": [1,2 , 3],\n\t"moved/~": 1\n}\n')
    assert (session.trace.one("tool_call")["state_effect"], session.trace.one("tool_call")["resource_id"]) == ("mutate", "a.json")


@pytest.mark.parametrize("operation, told", [
    ({"op": "test", "path": "/a", "value": 2}, "the value is another one"),
    ({"op": "remove", "path": "/b"}, "there is no such value"), ({"op": "replace", "path": "/b", "value": 1}, "there is no such value"),
    ({"op": "add", "path": "/l/9", "value": 1}, "there is no such place"),
    ({"op": "add", "path": "/l/01", "value": 1}, "there is no such place"),
    ({"op": "add", "path": "/b/c", "value": 1}, "there is no such place"), ({"op": "move", "from": "/o", "path": "/o/p"}, "into itself"),
    ({"op": "copy", "from": "/b", "path": "/c"}, "from: there is no such value"), ({"op": "add", "path": "/b"}, "value is needed"),
    ({"op": "dance", "path": "/b"}, "op is needed"), ({"op": "remove", "path": "b"}, "a JSON Pointer"),
    ({"op": "remove", "path": ""}, "the whole document cannot be removed")])
def test_std_json_changes_nothing_when_one_operation_fails(lab, operation, told):
    text = '{"a": 1, "l": [1], "o": {"p": 1}}'
    answers, after, session = change(lab, text, {"patch": [{"op": "replace", "path": "/a", "value": 1.0}, operation]})

    ((is_error, sentence),) = answers
    assert is_error and told in sentence and sentence.startswith("operation 1") and sentence.endswith("nothing was changed")
    assert after == text


def test_std_json_merges_and_makes_files(lab):
    answers, work, _session = ask(
        lab, "json", {"path": "a.json", "merge": {"a": {"b": None, "c": {"d": 1}}, "e": [1]}},
        {"path": "new/b.json", "merge": {"x": {"y": "ü"}, "z": None}}, {"path": "c.json", "merge": {"a": 1}},
        {"path": "d.json", "patch": [{"op": "replace", "path": "", "value": ["new"]}]},
        files={"a.json": '{"a":{"b":1,"k":"\\u00fc"},"e":{"f":1}}', "c.json": "[1]", "d.json": '{"old": 1}'})

    assert answers[:2] == [(False, "a.json: merged"), (False, "new/b.json: merged")]
    assert answers[2] == (True, "c.json holds no object to merge into")
    assert (work / "a.json").read_text() == '{"a":{"k":"\\u00fc","c":{"d":1}},"e":[1]}'
    assert (work / "new/b.json").read_text() == '{\n  "x": {\n    "y": "ü"\n  }\n}\n'
    assert (work / "c.json").read_text() == "[1]"
    assert json.loads((work / "d.json").read_text()) == ["new"]


def test_std_json_works_on_large_files_and_bounds_its_answers(lab):
    document = {"rows": [{"id": number, "name": f"row {number}", "tags": ["a", "b"]} for number in range(20_000)]}
    answers, work, _session = ask(
        lab, "json", {"path": "a.json"}, {"path": "a.json", "query": "$.rows[?@.id == 19999].name"},
        {"path": "a.json", "query": "$..tags"}, {"path": "a.json", "patch": [{"op": "replace", "path": "/rows/777/name", "value": "x"}]},
        {"path": "a.json", "query": "$", "depth": 1}, files={"a.json": json.dumps(document)})

    assert answers[1] == (False, '/rows/19999/name "row 19999"')
    assert answers[4] == (False, '{\n  "rows": [20000 items]\n}')
    for _, text in (answers[0], answers[2]):
        assert len(text) < 66_000 and text.endswith("[cut at 65536 bytes: ask for less, or with depth]")
    document["rows"][777]["name"] = "x"
    assert (work / "a.json").read_text() == json.dumps(document)


def test_std_json_takes_what_is_deep_and_refuses_what_is_deeper(lab):
    answers, _work, _session = ask(
        lab, "json", {"path": "deep.json", "query": "$..a"}, {"path": "deep.json", "merge": {"x": 1}},
        {"path": "deeper.json"}, files={"deep.json": '{"a":' * 500 + "1" + "}" * 500, "deeper.json": "[" * 600 + "]" * 600})

    assert answers[0][0] is False and answers[0][1].endswith("[cut at 65536 bytes: ask for less, or with depth]")
    assert answers[1] == (False, "deep.json: merged")
    assert answers[2] == (True, "deeper.json is no JSON that is read here: line 1, column 514")


def test_std_json_keeps_strings_and_numbers_as_they_were_written(lab):
    text = '{"n": [1e400, -0.0, 12345678901234567890, 0.1000], "s": "\\u00e9\\/\\ud83e\\udd89", "t": 1}'
    _answers, after, _session = change(lab, text, {"merge": {"t": 2}})

    assert after == text.replace('"t": 1', '"t": 2')


@pytest.mark.parametrize("name", ["fetch", "json"])
def test_std_tools_are_small(name):
    assert (BUILD / f"guests/{name}.wasm").stat().st_size <= 120 << 10
