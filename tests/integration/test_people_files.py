# SPDX-License-Identifier: Apache-2.0
#
# Files as people have them: heads of skills, archives of skills, `.env`, tasks in other encodings. Numbers are those of the
# table of reports that showed each fault.

import os
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
    {"README.txt": "x", "forms/SKILL.md": "# Forms\n", "forms/a.txt": "a"},
], ids=["plain", "mac", "backslash", "beside"])
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
