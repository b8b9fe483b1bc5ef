# SPDX-License-Identifier: Apache-2.0
#
# Guides whose commands run as they stand, and what every page names: links, pictures, places in this tree, commands with their
# options, codes and keys of manifests.

import functools
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest
import yaml

from tests.support.lab import BUILD, MUR, ROOT, SLOWER

PAGES = sorted(path.relative_to(ROOT).as_posix() for pattern in (
    "README.md", "docs/*.md", "docs/spec/*.md", "artifacts/**/README.md", "examples/**/*.md", "python/README.md", "tests/**/README.md")
    for path in ROOT.glob(pattern))
PEOPLES_PAGES = [page for page in PAGES if not page.startswith("docs/spec/")]
PLACE = re.compile(r"`((?:src|tests|scripts|docs|artifacts|bench|packaging|examples|include|python|wit)/[\w./*-]+)`")
CODE = re.compile(r"\b[EW]-[A-Z]{2,4}-\d{3}\b")


def without_blocks(text):
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    """The names that a page's headings get on a page of a code host."""
    heads = re.findall(r"^#+ (.*)$", without_blocks(path.read_text()), re.MULTILINE)
    bare = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda found: found.group(1) or "", head.strip()).lower() for head in heads]
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", head)) for head in bare}


@pytest.mark.parametrize("page", PAGES)
def test_docs_every_link_picture_and_place_is_there(page):
    text = without_blocks((ROOT / page).read_text())
    words = re.sub(r"`[^`]*`", "", text)
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", words) + re.findall(r"(?:src|srcset)=\"([^\"]+)\"", words):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            missing.append(target)
    missing += [place for place in PLACE.findall(text) if not list(ROOT.glob(place.rstrip("/")))]
    assert not missing


@functools.cache
def help_of(*words):
    shown = subprocess.run([MUR, "help", *words], capture_output=True, text=True, timeout=30 * SLOWER)
    return shown.stdout if shown.returncode == 0 else None


def code_of(text):
    """Each piece of a page that is set as code: lines of blocks, indented lines, words between backticks."""
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    rest = without_blocks(text)
    yield from re.findall(r"^    (.*)$", rest, re.MULTILINE)
    yield from (words.replace("\n", " ") for words in re.findall(r"`([^`]+)`", rest))


def commands_in(piece):
    """The words of every call of mur in it, without what stands between quotes."""
    plain = re.sub(r"\"[^\"]*\"|'[^']*'", "TEXT", piece)
    for found in re.finditer(r"(?:^|[\s;|&(`$]|build/)mur ([a-z][^|;&)#`]*)", plain):
        words = found.group(1).split()
        yield words[:words.index("--")] if "--" in words else words


def unknown_in(words):
    """What of a call of mur its help does not know; None where it knows all of it."""
    if not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return None
    topic, shown = words[:1], help_of(words[0])
    if shown and "<COMMAND>" in shown.split("\n\n")[1] and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]):
        topic, shown = words[:2], help_of(*words[:2])
    if shown is None:
        return " ".join(topic)
    for word in words:
        option = re.match(r"\[?(--[a-z][a-z-]*|-[a-zA-Z]\b)", word)
        if option and not re.search(rf"(^|[\s,]){re.escape(option.group(1))}(?![\w-])", shown, re.MULTILINE):
            return f"{' '.join(topic)} {option.group(1)}"
    return None


@pytest.mark.parametrize("page", PEOPLES_PAGES)
def test_docs_every_command_and_option_named_exists(page):
    pieces = code_of((ROOT / page).read_text())
    assert not [unknown for piece in pieces for words in commands_in(piece) if words and (unknown := unknown_in(words))]


def test_docs_a_command_or_option_that_is_not_there_would_be_seen():
    told = [unknown_in(words) for words in commands_in('mur run --tusk "--deadline" && mur frob; .../build/mur trace shaw --json')]
    assert told == ["run --tusk", "frob", "trace shaw"]


def test_docs_every_code_named_is_explained(lab):
    named = sorted({code for page in PEOPLES_PAGES for code in CODE.findall((ROOT / page).read_text())})
    assert len(named) > 50
    listed = lab.mur("explain").ok().stdout
    assert not [code for code in named if code not in listed]


def manifests_of(page):
    """The blocks of a page that are a manifest of an agent or a part of one."""
    for text in re.findall(r"^ *```yaml\n(.*?)^ *```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        blocks = list(yaml.safe_load_all(text)) if page != "docs/exports-and-control.md" else []
        block = {"artifacts": blocks[0]} if blocks and isinstance(blocks[0], list) else blocks[0] if blocks else None
        if isinstance(block, dict) and not {"members", "registry", "trust", "receivers", "apiVersion", "input_schema", "binding"} & set(block):
            yield text, block


@pytest.mark.parametrize("page", [page for page in PEOPLES_PAGES if list(manifests_of(page))])
def test_docs_every_key_of_a_manifest_shown_is_known(lab, page):
    for number, (text, block) in enumerate(manifests_of(page)):
        manifest = {"name": "x", "version": "0.1.0", **block}
        if "inference" not in manifest:
            driver = {"name": "std/driver-scripted", "version": "0.1.0", "runtime": "driver"}
            manifest["artifacts"] = [driver, *manifest.get("artifacts", [])]
            manifest["inference"] = {"model": "scripted", "driver": {"artifact": "std/driver-scripted", "config": {"steps": [{"text": "x"}]}}}
        keys = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
        told = lab.project(f"block-{number}", manifest).run("--explain-scope", env=keys).ok()
        assert "W-SEC-019" not in told.stderr and "unknown" not in told.stderr, told.stderr


def shell_blocks(name):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / name).read_text(), re.MULTILINE | re.DOTALL))


def run_guide(lab, page, folder, after="", **variables):
    """Runs every command of a page in that folder."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-euxc", shell_blocks(page) + after], cwd=folder, capture_output=True, text=True, timeout=120 * SLOWER,
        stdin=subprocess.DEVNULL, env=lab.environment({"PATH": f"{lab.mur_path.parent}:{os.environ['PATH']}", **variables}))


def test_docs_the_packaging_guide_runs_as_it_stands(lab):
    folder = lab.directory / "guide"
    done = run_guide(lab, "packaging.md", folder, COMPONENT=BUILD / "guests/echo.wasm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All checks passed." in done.stdout and "status:  ok" in done.stdout
    assert (folder / "release/artifacts-index.json").is_file()


def test_docs_the_guide_to_the_door_runs_as_it_stands(lab):
    folder = lab.directory / "door"
    folder.mkdir()
    python = re.search(r"^```python\n(.*?)^```", (ROOT / "docs/talk-to-a-capsule.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
    (folder / "client.py").write_text(python)
    script = shell_blocks("talk-to-a-capsule.md").replace("mur ps\n", f"DOOR=$DOOR {sys.executable} client.py\nmur ps\n")
    done = subprocess.run(
        ["bash", "-euxc", script + "\nwait"], cwd=folder, capture_output=True, text=True, timeout=120 * SLOWER,
        stdin=subprocess.DEVNULL, env=lab.environment({"PATH": f"{lab.mur_path.parent}:{os.environ['PATH']}"}))
    told = done.stdout + done.stderr
    assert "helper@0.1.0" in done.stdout and "stopped: ses_" in done.stdout, told
    assert "nothing to cancel: the task had already ended" in done.stdout, told
    assert done.stdout.count("TASK_STATE_COMPLETED") >= 4 and "TASK_STATE_CANCELED" in done.stdout, told
    assert "All is well." in (folder / "watched.txt").read_text(), told


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_docs_the_delegation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "team"
    shutil.copytree(ROOT / "examples/team", folder)
    done = run_guide(lab, "delegation.md", folder, ROOST_PORT=free_port())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "status:  ok" in done.stdout and "The reader is done:" in done.stdout
    assert "water the plants" in done.stdout and "child trace:" in done.stdout


def test_docs_the_mcp_guide_runs_as_it_stands(lab):
    folder = lab.directory / "mcp"
    done = run_guide(lab, "mcp.md", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "You asked: what is there?" in done.stdout and (folder / "notes/.vscode/mcp.json").is_file()
    assert "notes" in done.stdout, done.stdout


def test_docs_the_formation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "formation"
    done = run_guide(lab, "formations.md", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Together we say:" in done.stdout and "There are three." in done.stdout, done.stdout + done.stderr
    assert "lead → worker  completed" in done.stdout, done.stdout + done.stderr


def test_docs_the_guide_to_exports_and_control_runs_as_it_stands(lab):
    folder = lab.directory / "shelf"
    done = run_guide(lab, "exports-and-control.md", folder, after="\nwait")
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert '"path":"sub/b.txt"' in done.stdout and "for you" in done.stdout, told
    assert "its key OTHER_KEY is one a controller supplies" in done.stderr, told
    assert done.stdout.count("value:    other") == 1 and "stopped: ses_" in done.stdout, told


def test_docs_the_evaluation_guide_runs_as_it_stands(lab):
    folder = lab.directory / "cases"
    done = run_guide(lab, "evaluation.md", folder)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert re.search(r"check +1/1 pass", done.stdout) and re.search(r"check +2/2 pass +0/2 pass", done.stdout), told


def test_docs_the_guide_to_plans_runs_as_it_stands(lab):
    folder = lab.directory / "plan"
    done = run_guide(lab, "plans.md", folder)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "2 succeeded, 1 failed, 0 skipped" in done.stdout and "2 attempts" in done.stdout, told
    assert (folder / "work/log").read_text() == "failed\n" and (folder / "work/report.txt").is_file(), told


def test_docs_the_guide_to_approvals_runs_as_it_stands(lab):
    done = run_guide(lab, "approvals.md", lab.directory / "asked", after="\nwait")
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "it asks\n" in done.stdout and "\ndone\n" in done.stdout and "stopped: ses_" in done.stdout, told
    assert (lab.directory / "asked/careful/errors.txt").read_text().count("mur answer") == 1, told


def test_docs_the_guide_to_hooks_runs_as_it_stands(lab):
    done = run_guide(lab, "hooks.md", lab.directory / "held")
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "by hook-deny" in done.stdout and "1/1 pass" in done.stdout, told


def commands_of(page, *first_words):
    """The indented command lines of a page that begin with one of these words, what this tree is called there put in place."""
    lines = re.findall(r"^    (\S.*)$", without_blocks((ROOT / page).read_text()), re.MULTILINE)
    named = [line.replace(".../build/mur", "mur").replace(".../scripts", f"{ROOT}/scripts") for line in lines]
    return [line for line in named if line.startswith(first_words)]


def by_hand(lab, folder, lines, **variables):
    """What a person types there, line by line."""
    return subprocess.run(
        ["bash", "-euxc", "\n".join(lines)], cwd=folder, capture_output=True, text=True, timeout=120 * SLOWER, stdin=subprocess.DEVNULL,
        env=lab.environment({"PATH": f"{lab.mur_path.parent}:{os.environ['PATH']}", **variables}))


def readme_capsule(lab):
    manifest = next(text for text, _ in manifests_of("README.md"))
    return lab.project("my-first", manifest)


def test_docs_the_readme_is_walked_in_an_empty_home(lab):
    empty = lab.directory / "empty"
    empty.mkdir()
    talk = commands_of("README.md", "mur chat", "echo")
    assert len(talk) == 2
    done = by_hand(lab, empty, talk)
    assert done.returncode == 0 and "You said: What is here?" in done.stdout, done.stdout + done.stderr

    steps = commands_of("README.md", "mur run", "mur trace")
    assert len(steps) == 3
    project = readme_capsule(lab)
    done = by_hand(lab, project.directory, steps)
    told = done.stdout + done.stderr
    assert "status:  ok" in done.stdout and "Tool calls" in done.stdout and "Effective grants" in done.stdout, told
    assert project.run("--print", "--task", "...").ok().stdout.startswith("I see:")


@pytest.mark.parametrize("provider, key", [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")])
def test_docs_what_the_readme_says_of_providers_holds_without_a_key(lab, provider, key):
    told = lab.mur("chat", "--with", provider, "--model", "some-model", stdin="hi\n").failed("E-MAN-003").stderr
    assert f"export {key}=<key>" in told and f"mur config set -g credentials.{key} <key>" in told


def test_docs_the_first_capsule_goes_on_as_its_page_says(lab):
    page = (ROOT / "docs/first-capsule.md").read_text()
    project = readme_capsule(lab)
    done = by_hand(lab, project.directory, commands_of("docs/first-capsule.md", "mkdir", "mur run --workdir"))
    assert done.returncode == 0 and "status:  ok" in done.stdout, done.stdout + done.stderr

    rows = [row.replace("\\|", "|") for row in re.findall(r"^\| `((?:mur run|git diff).*?)`", page, re.MULTILINE)]
    assert len(rows) == 5
    subprocess.run(["git", "init", "-q", project.directory], check=True)
    done = by_hand(lab, project.directory, [row.replace("git diff", "git status") for row in rows])
    assert done.returncode == 0 and '"answer":' in done.stdout and '"url":' in done.stdout, done.stdout + done.stderr

    tool = lab.directory / "echo"
    tool.mkdir()
    (tool / "echo.c").write_text(re.search(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL).group(1))
    (tool / "murmur.yaml").write_text(re.search(r"^```yaml\n(name: echo\n.*?)^```", page, re.MULTILINE | re.DOTALL).group(1))
    compiled, *rest = commands_of("docs/first-capsule.md", str(ROOT), "mur build", "mur publish")
    subprocess.run(["bash", "-euxc", compiled], cwd=tool, check=True, capture_output=True, timeout=120 * SLOWER)
    done = by_hand(lab, tool, rest)
    assert done.returncode == 0 and len(rest) == 2, done.stdout + done.stderr
    manifest = yaml.safe_load((project.directory / "murmur.yaml").read_text())
    manifest["artifacts"].append({"name": "local/echo", "version": "0.1.0"})
    manifest["inference"]["driver"]["config"] = {"steps": [
        {"tool_calls": [{"name": "echo", "input": {"text": "hello"}}]}, {"text": "{{result}}"}]}
    project.write_manifest(manifest)
    project.mur("install").ok()
    assert "hello" in project.run("--print", "--task", "x").ok().stdout
