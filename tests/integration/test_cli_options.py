# SPDX-License-Identifier: Apache-2.0
#
# Every subcommand's positionals and options, as its help shows them (spec/cli.md 12), and how the grammar takes them (1).

import re

import pytest

COMMANDS = {
    "list": ([], ["-g, --global", "--all", "--contract <PREFIX>"]),
    "new": (["[TEMPLATE]", "[NAME]", "[FOLDER]"], ["--roster <NAME>", "--language <LANGUAGE>", "--index <PATH|URL>"]),
    "search": (["<QUERY>"], ["--index <PATH|URL|local>", "--limit <LIMIT>"]),
    "index": (["<DIR>"], ["--repo <OWNER/REPO>", "--release <TAG>", "--merge <INDEX>", "-o, --output <FILE>"]),
    "version": ([], ["--json"]),
    "doctor": (["[ARGS]"], ["--verbose", "--bind <ADDR>", "--learn <PROGRAM>"]),
    "build": (["[SOURCE]"], ["-o, --output <OUTPUT>", "--skill [<NAME>]", "--version <VERSION>", "--summary <TEXT>"]),
    "publish": (["[ARTIFACT_PATH]", "[TO]"], ["--platform <PLATFORM>"]),
    "install": (["[ARTIFACT]"], ["-g, --global", "--all-platforms", "--no-precompile", "--update", "--resolve"]),
    "sign": (["<ZIP>"], ["--key <NAME>"]), "verify": (["<ARTIFACT>"], []),
    "trust keygen": (["<NAME>"], []), "trust add": (["<NAME>", "<FILE>"], []), "trust remove": (["<NAME>"], []),
    "trust list": ([], []),
    "precompile": (["<ZIP>"], ["--workdir <WORKDIR>", "--json"]),
    "run": ([], ["--manifest", "--capsule", "--capsule-version", "--roster [", "--spawn-grant-stdin", "--task", "--system-prompt", "--model <NAME>", "--max-session-tokens <N>", "-p, --print", "-q, --quiet",
                 "--deadline", "--context", "--resume [", "--resume-mode", "--forget-session", "--lifecycle-task-acceptance",
                 "--lifecycle-after-task", "--workdir", "--json", "-v, --verbose", "--bind", "--no-env-file", "--containment", "--unconfined",
                 "--explain-scope", "--port <PORT>", "--fleet-token <FILE>", "--public-url <URL>", "--records-store <URL>", "--secrets-dir <DIR>"]),
    "conversation ls": ([], ["--record <NAME>", "--message <MSG-ID>", "--json"]),
    "conversation show": (["<CONTEXT_ID>"], ["--record <NAME>", "--full", "--json"]),
    "conversation rm": (["<CONTEXT_ID>"], ["--record <NAME>"]),
    "conversation truncate": (["<CONTEXT_ID>"], ["--keep <N>", "--record <NAME>"]),
    "trace show": (["[SESSION]"], ["--workdir <WORKDIR>", "--body <SELECTOR>", "--turn <N>", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>", "--tree"]),
    "trace steps": (["[SESSION]"], ["--verbose", "--workdir", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "trace diff": (["[BEFORE]", "[AFTER]"], ["--workdir", "--steps", "--json"]),
    "trace report": (["[SESSIONS]"], ["--last <LAST>", "--since <SINCE>", "--workdir"]),
    "trace list": ([], ["--workdir", "--json"]),
    "trace rm": (["<SESSION>"], ["--workdir", "--json"]),
    "eval show": (["[SESSION]"], ["--workdir", "--json"]),
    "eval diff": (["[A]", "[B]"], ["--workdir", "--run [<RUN>]", "--json"]),
    "eval run": (["[CAPSULE]"], ["--model <HOW>", "--dataset <DATASET>", "--variant <VARIANT>", "--repeat <REPEAT>"]),
    "watch": (["[SESSION]"], ["--url <HOST:PORT>", "--wait", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "send": (["[SESSION]", "[TEXT]"], ["--context <ID>", "--detach", "--url <HOST:PORT>", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "answer": (["[SESSION]", "[TEXT]"], ["--task <ID>", "--detach", "--url <HOST:PORT>", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "cancel": (["[SESSION]", "[TASK_ID]"], ["--url <HOST:PORT>", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "control show": (["[SESSION]"], ["--json"]),
    "control set": (["<SETTING>", "<VALUE>", "[SESSION]"], []),
    "control secret": (["<NAME>", "[SESSION]"], []),
    "control forget": (["<NAME>", "[SESSION]"], []),
    "ps": ([], ["--verbose", "--json", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "token": (["[SESSION]"], ["--credential <NAME>"]),
    "stop": (["<SESSION>"], ["--timeout <SECONDS>", "--fleet", "--kubeconfig <FILE>", "--namespace <NAME>"]),
    "beta list": ([], []), "beta enable": (["<FEATURE>"], []), "beta disable": (["<FEATURE>"], []),
    "config set": (["<KEY>", "<VALUE>"], ["-g, --global"]),
    "config get": (["<KEY>"], []), "config list": ([], []), "config path": ([], []),
    "config unset": (["<KEY>"], ["-g, --global"]),
    "explain": (["[CODE]"], []),
}
HIDDEN = ["--capsule-sha256", "--store-root", "--inherited-deadline", "--readiness-tokens", "--workdir-identity",
          "--parent-workdir-snapshot", "--contained-launch"]
DEFAULTS = {"search": "10", "index": "artifacts-index.json", "doctor": "127.0.0.1", "eval run": "1", "stop": "10", "token": "operator",
            "run": "./murmur.yaml", "build": "."}


def shown(text, heading):
    """The first column of a block of the help."""
    block = re.search(rf"^{heading}:\n((?:  .*\n)+)", text, re.MULTILINE)
    lines = block.group(1).splitlines() if block else []
    return [re.split(r"\s{2,}", line.strip())[0] for line in lines if re.match(r"  (?:    --|  ?-|[\[<])|  -", line)]


@pytest.mark.parametrize("command", COMMANDS)
def test_cli_12_a_command_takes_what_the_table_says(lab, command):
    positionals, options = COMMANDS[command]
    words = command.split()
    text = lab.mur(*words, "--help").ok().stdout
    assert [re.sub(r"\.\.\.$", "", name) for name in shown(text, "Arguments")] == positionals
    listed = shown(text, "Options")
    assert "-h, --help" in listed
    listed.remove("-h, --help")
    assert len(listed) == len(options), listed
    for option in options:
        assert any(entry.startswith(option) for entry in listed), (option, listed)
    assert not any(hidden in text for hidden in HIDDEN)
    if command in DEFAULTS:
        assert DEFAULTS[command] in text
    assert lab.mur("help", *words).ok().stdout == text
    assert lab.mur(*words, "-h").ok().stdout == text


@pytest.mark.parametrize("group,members", [
    ("trace", ["show", "steps", "diff", "report", "export", "pack", "list", "fetch", "rm"]), ("eval", ["show", "diff", "run"]),
    ("conversation", ["ls", "show", "rm", "truncate"]), ("control", ["show", "set", "secret", "forget"]),
    ("beta", ["list", "enable", "disable"]), ("config", ["set", "get", "list", "unset", "path"]),
])
def test_cli_12_a_group_lists_its_members_and_help(lab, group, members):
    text = lab.mur(group, "--help").ok().stdout
    block = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE).group(1)
    assert [line.split()[0] for line in block.splitlines() if re.match(r"  \S", line)] == [*members, "help"]
    alone = lab.mur(group).failed(exit_status=2)
    assert alone.stdout == "" and alone.stderr == text
    assert lab.mur("help", group).ok().stdout == text


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "help"])
def test_cli_1_what_a_command_does_not_know_is_a_usage_error(lab, command):
    for extra in (["--no-such-option"], ["--no-such-option=x"], ["-Z"], ["--version=1"] if command != "build" else ["-V"]):
        result = lab.mur(*command.split(), *extra).failed(exit_status=2)
        assert result.stdout == "" and result.stderr.startswith("error: ")
        assert (lab.murmur_home / "running").exists() is False


@pytest.mark.parametrize("arguments", [
    ("search", "x", "--limit", "ten"), ("search", "x", "--limit=-1"), ("search", "x", "--limit"), ("index", "d"), ("index", "d", "--repo", "a/b"),
    ("list", "-g", "--all"), ("precompile",), ("config", "set", "a"), ("beta", "enable"), ("stop",), ("cancel",), ("cancel", "tsk_1"),
    ("ps", "--json", "--verbose"), ("conversation", "truncate", "c"), ("trace", "rm"), ("stop", "@1", "--timeout", "soon"),
    ("watch", "@1", "--url", "localhost:1"), ("new",), ("install", "a", "b"), ("version", "x"), ("doctor", "x"), ("token", "a", "b"),
    ("run", "x"), ("run", "--json=yes"), ("run", "--deadline", "0"), ("run", "--deadline", "1.5"), ("run", "--resume-mode", "full"),
    ("run", "--capsule", "a/b"), ("run", "--capsule-version", "1"), ("run", "--manifest", "m", "--capsule", "a/b", "--capsule-version", "1"),
    ("run", "--roster", "r", "--workdir", "w"),
])
def test_cli_1_usage_errors_exit_2_with_an_empty_stdout(lab, arguments):
    project = lab.project()
    result = project.mur(*arguments).failed(exit_status=2)
    assert result.stdout == "" and result.stderr.startswith("error: ") and not lab.murmur_home.exists()


@pytest.mark.parametrize("command", ["install", "publish", "search", "new"])
def test_cli_02_an_unknown_registry_says_where_the_command_looks(lab, command):
    for form in (["--registry", "x"], ["--registry=x"]):
        lines = lab.mur(command, *form).failed(exit_status=2).stderr.splitlines()
        assert len([line for line in lines if line.startswith("  hint: ")]) == 1
    assert "hint:" not in lab.mur("list", "--registry", "x").failed(exit_status=2).stderr


def test_cli_1_values_may_stand_behind_an_equals_sign_and_two_dashes_end_the_flags(lab):
    project = lab.project("p", 'name: x\nversion: "1"\nruntime: skill\n', {"skill.md": "# x\n"})
    assert project.mur("build", "--output=a.mur.zip", "--", ".").ok().stdout == "Built artifact: a.mur.zip (WIT level 1)\n"
    assert project.mur("build", "-o", "b.mur.zip").ok().stdout == "Built artifact: b.mur.zip (WIT level 1)\n"
    assert "--odd" in project.mur("publish", "--", "--odd").failed("E-IO-001").stderr
