# SPDX-License-Identifier: Apache-2.0
#
# Files as people have them: heads of skills, archives of skills, `.env`, tasks in other encodings. Numbers are those of the
# table of reports that showed each fault.

import os
import re
import zipfile

import pytest

from tests.support.model_server import answer

HEADS = {
    "quoted": "---\nname: forms\ndescription: \"Fills forms: reads fields.\"\n---\n# Forms\n",
    "unquoted": "---\nname: forms\ndescription: Fills forms: reads fields.\n---\n# Forms\n",
    "folded": "---\nname: forms\ndescription: >\n  Fills forms:\n  reads fields.\n---\n# Forms\n",
    "windows": "---\r\nname: forms\r\ndescription: \"Fills forms: reads fields.\"\r\n---\r\n# Forms\r\n",
    "marked": "\ufeff---\ndescription: \"Fills forms: reads fields.\"\n---\n# Forms\n",
}


def real_agent(lab, model, tools=(), api_key=None, name="agent"):
    """A project whose driver asks the scripted provider."""
    gateway = {"endpoint": model.url, **({"api_key": api_key} if api_key else {"keyless": True})}
    return lab.agent(name, "std/driver-anthropic@0.1.0", tools=tools, gateway=gateway,
                     inference={"model": "claude-test", "retry": {"initial_delay_ms": 1, "max_delay_ms": 5}})


def described(model, name):
    return {tool["name"]: tool["description"] for tool in model.requests[-1].json["tools"]}[name]


@pytest.mark.parametrize("form", HEADS)
def test_report_28_the_model_is_told_what_a_packed_skill_is_for(lab, model, form):
    skill = lab.project("s", files={"SKILL.md": HEADS[form]})
    skill.mur("build", "--skill", "forms", ".").ok()
    skill.mur("publish", "forms-0.1.0.mur.zip").ok()
    model.script(answer("done"))
    agent = real_agent(lab, model, [{"name": "local/forms", "version": "0.1.0", "runtime": "skill"}])
    agent.run("--task", "go").ok()
    assert described(model, "forms") == "Fills forms: reads fields."


@pytest.mark.parametrize("form", HEADS)
def test_report_28_the_model_is_told_what_a_skill_of_a_folder_is_for(lab, model, form):
    model.script(answer("done"))
    agent = real_agent(lab, model, [{"name": "forms", "runtime": "skill", "source": "s"}])
    agent.write("s/SKILL.md", HEADS[form])
    agent.run("--task", "go").ok()
    assert described(model, "forms") == "Fills forms: reads fields."


def test_report_28_a_skill_in_utf16_is_packed_as_utf8(lab):
    skill = lab.project("s", files={"SKILL.md": "---\ndescription: schön\n---\n# Größe\n".encode("utf-16")})
    skill.mur("build", "--skill", "forms", ".").ok()
    with zipfile.ZipFile(skill / "forms-0.1.0.mur.zip") as archive:
        assert archive.read("skill.md").decode() == "---\ndescription: schön\n---\n# Größe\n"
        assert "description: schön" in archive.read("murmur.yaml").decode()


def zip_with(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.mark.parametrize("files", [
    {"forms/SKILL.md": "# Forms\n", "forms/a.txt": "a"},
    {"forms/": "", "forms/SKILL.md": "# Forms\n", "forms/a.txt": "a", "__MACOSX/forms/._SKILL.md": "x", ".DS_Store": "x"},
    {"forms\\SKILL.md": "# Forms\n", "forms\\a.txt": "a"},
    {"./forms/SKILL.md": "# Forms\n", "./forms/a.txt": "a"},
    {"README.txt": "x", "forms/SKILL.md": "# Forms\n", "forms/a.txt": "a"},
], ids=["plain", "mac", "backslash", "dot", "beside"])
def test_report_30_a_zip_with_one_folder_is_that_skill(lab, files):
    project = lab.project("p")
    zip_with(project / "forms.zip", files)
    result = project.mur("build", "--skill", "forms", "forms.zip").ok()
    with zipfile.ZipFile(project / "forms-0.1.0.mur.zip") as archive:
        assert archive.namelist() == ["murmur.yaml", "skill.md", "a.txt", "murmur-build.json"]
    assert ("README.txt" in result.stderr) == ("README.txt" in files)
    assert "MACOSX" not in result.stderr


def test_report_30_several_skills_or_none_are_said(lab):
    project = lab.project("p")
    zip_with(project / "two.zip", {"a/SKILL.md": "x", "b/SKILL.md": "x"})
    result = project.mur("build", "--skill", "x", "two.zip").failed("E-IO-001")
    assert "a/, b/" in result.stderr
    zip_with(project / "deep.zip", {"repo/skills/a/SKILL.md": "x"})
    assert "repo/skills/a/" in project.mur("build", "--skill", "x", "deep.zip").failed("E-IO-001").stderr
    zip_with(project / "none.zip", {"a/readme.md": "x"})
    assert "hint:" in project.mur("build", "--skill", "x", "none.zip").failed("E-IO-001").stderr
    project.write("repo/forms/SKILL.md", "# x\n")
    assert "repo/forms" in project.mur("build", "--skill", "x", "repo").failed("E-IO-001").stderr


def test_report_28_what_a_package_leaves_out_is_named(lab):
    skill = lab.project("s", files={"SKILL.md": "# Forms\n", "scripts/fill.py": "x", "references/r.md": "x", "b.txt": "b"})
    os.symlink("/etc/passwd", skill / "link")
    result = skill.mur("build", "--skill", "forms", ".").ok()
    assert "W-BLD-004" in result.stderr
    assert "link (a link), references/, scripts/" in result.stderr
    assert "b.txt" not in result.stderr


ENV_KEYS = {
    "export": "export PROBE_KEY=abc\n",
    "comment": "PROBE_KEY=abc # mine\n",
    "quoted-comment": "PROBE_KEY=\"abc\" # mine\n",
    "single-comment": "PROBE_KEY='abc'# mine\n",
    "export-quoted": "export   PROBE_KEY = 'abc'\n",
    "windows": "A=1\r\nexport PROBE_KEY=\"abc\"\r\n",
    "marked": "\ufeffPROBE_KEY=abc\n",
    "utf16": "PROBE_KEY=abc\r\n".encode("utf-16"),
    "several-lines": "PEM=\"-----BEGIN X-----\nabc=\n-----END X-----\"\nPROBE_KEY=abc\n",
    "backquoted": "PROBE_KEY=`abc`\n",
}


@pytest.mark.parametrize("form", ENV_KEYS)
def test_report_31_the_key_of_an_env_file_is_read(lab, model, form):
    model.script(answer("done"))
    agent = real_agent(lab, model, api_key="${PROBE_KEY}")
    agent.write(".env", ENV_KEYS[form])
    agent.run("--task", "go").ok()
    assert model.requests[0].headers["x-api-key"] == "abc"


@pytest.mark.parametrize("text, line, words", [
    ("A=1\nPEM=\"-----BEGIN\nabc=\n", 2, "a quote is not closed"),
    ("A='x' y\n", 1, "text behind the closing quote"),
    ("A=1\nexport A B=1\n", 2, "not a line of NAME=value"),
])
def test_report_32_an_env_file_that_cannot_be_read_is_refused_where_it_goes_wrong(lab, model, text, line, words):
    agent = real_agent(lab, model)
    agent.write(".env", text)
    result = agent.run("--task", "go").failed("E-IO-003")
    assert f".env:{line}: {words}" in result.stderr


# --- conflict marks of a merge ---


def two_branches(lab, ours, theirs):
    """A project whose lock two branches changed: each a list of (name, version, digest)."""
    def entries(pins):
        return "".join(f"- name: {name}\n  resolved_version: {version}\n  sha256:\n    any: {digest * 64}\n  origin: operator\n"
                       for name, version, digest in pins)
    project = lab.agent(steps=[{"text": "done"}], tools=["std/files@0.1.0"])
    project.mur("install").ok()
    own = project.directory.joinpath("murmur.lock").read_text()
    project.write("murmur.lock", f"{own}<<<<<<< HEAD\n{entries(ours)}=======\n{entries(theirs)}>>>>>>> topic\n")
    return project, own


def test_report_lock_conflict_marks_are_named_with_the_command_that_mends_them(lab):
    project, own = two_branches(lab, [("acme/a", "1.0.0", "a")], [("acme/b", "2.0.0", "b")])
    line = len(own.splitlines()) + 1
    for arguments in (["run", "--task", "x"], ["install"]):
        result = project.mur(*arguments).failed("E-RUN-003")
        assert f"murmur.lock:{line}: a conflict mark of a merge" in result.stderr
        assert "mur install --resolve" in result.stderr


def test_report_lock_install_resolve_keeps_the_pins_of_both_sides(lab):
    project, own = two_branches(lab, [("acme/a", "1.0.0", "a"), ("acme/c", "1.0.0", "c")],
                                [("acme/b", "2.0.0", "b"), ("acme/c", "1.0.0", "c")])
    result = project.mur("install", "--resolve").ok()
    assert "murmur.lock: 5 pins of both sides kept" in result.stdout
    lock = (project / "murmur.lock").read_text()
    assert lock.startswith(own) and "<<<" not in lock and ">>>" not in lock
    assert [lock.count(f"name: acme/{name}") for name in "abc"] == [1, 1, 1]
    project.run("--task", "x").ok()
    assert "no conflict marks" in project.mur("install", "--resolve").ok().stderr


def test_report_lock_of_two_versions_the_manifests_is_taken(lab):
    project, own = two_branches(lab, [], [])
    entry = next(part for part in re.split(r"(?m)^(?=- name: )", own) if "std/files" in part)
    for ours, theirs in (("0.1.0", "9.9.9"), ("9.9.9", "0.1.0")):
        sides = [entry.replace("0.1.0", version) for version in (ours, "0.0.1", theirs)]
        project.write("murmur.lock", own.replace(
            entry, f"<<<<<<< HEAD\r\n{sides[0]}||||||| base\n{sides[1]}=======\n{sides[2]}>>>>>>> topic\n"))
        project.mur("install", "--resolve").ok()
        assert (project / "murmur.lock").read_text() == own


def test_report_lock_other_bytes_of_one_version_are_not_chosen_between(lab):
    project, _ = two_branches(lab, [("acme/a", "1.0.0", "a")], [("acme/a", "1.0.0", "b")])
    before = (project / "murmur.lock").read_text()
    assert "not the same bytes" in project.mur("install", "--resolve").failed("E-REG-005").stderr
    assert (project / "murmur.lock").read_text() == before


def test_report_conflict_marks_in_a_manifest_are_named(lab):
    project = lab.project("p")
    project.write("murmur.yaml", "name: p\n<<<<<<< HEAD\nversion: \"1\"\n=======\nversion: \"2\"\n>>>>>>> topic\n")
    assert "murmur.yaml:2:1: a conflict mark of a merge" in project.run("--task", "x").failed("E-MAN-002").stderr


@pytest.mark.parametrize("text, line", [
    ("name: p\nversion: \"1\"\ninference:\n\tmodel: x\n", 4), ("name: p\nartifacts:\n\t- a\n", 3),
    ("name: p\nlimits:\n  a: 1\n \tb: 2\n", 4),
])
def test_newcomer_C9_a_tab_is_called_a_tab(lab, text, line):
    project = lab.project("p")
    project.write("murmur.yaml", text)
    result = project.run("--task", "x").failed("E-MAN-002")
    assert "a tab: YAML is indented with blanks" in result.stderr and f"murmur.yaml:{line}:" in result.stderr
