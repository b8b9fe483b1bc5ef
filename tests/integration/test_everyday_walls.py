# SPDX-License-Identifier: Apache-2.0
#
# The rows 16 to 27 of reports from other tools, one test each, and that nothing private comes in with what work needs.

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.support.commands import answers, call, command_agent, run_commands
from tests.support.hosts import needs

PATH = "/usr/local/bin:/usr/bin:/bin"
CLASSES = ["scoped", "sealed"]


def told(lab, tier, calls, shell, files=(), env=None, **capabilities):
    """The answers of one session; files are put into its work folder before."""
    needs(lab, tier)
    for name in shell:
        if not shutil.which(name, path=PATH) and name != "python3":
            pytest.skip(f"{name} is not installed")
    project = command_agent(lab, [call(*words) if isinstance(words, tuple) else words for words in calls], shell=None,
                            name=f"agent-{tier}", capabilities={"containment": tier, "shell": {"allow": list(shell)}, **capabilities})
    for name, content in dict(files).items():
        project.write(f"work/{name}", content)
    return run_commands(project, env={"PATH": PATH, **(env or {})})


# --- reports -------------------------------------------------------------------------------------------------------------


def test_report_16_words_are_split_as_a_shell_splits_them(lab):
    files = {"t.txt": "bfoob\na foo b\n", "u.txt": "a.b\n"}
    _, (single, double, dot, empty, none, unclosed) = told(lab, "scoped", [
        ("grep", "-nE '\\bfoo\\b' t.txt"), ("grep", '-nE "\\bfoo\\b" t.txt'), ("sed", "'s/\\./-/g' u.txt"),
        ("grep", '-c "" t.txt'), ("ls",), ("grep", "-c 'a t.txt")], ("grep", "sed", "ls"), files)
    assert (single.stdout, double.stdout, dot.stdout, empty.stdout) == ("2:a foo b\n", "2:a foo b\n", "a-b\n", "2\n")
    assert none.code == 0 and "t.txt" in none.stdout, "a program without arguments needs no command"
    assert unclosed.code is None and "a quote of the command is not closed: nothing was started" in unclosed.text


def test_report_16_signs_of_a_shell_that_no_shell_reads_are_told(lab):
    files = {"t.txt": "a|b\n", "u.txt": "b\n"}
    _, (piped, listed, pattern, quoted, ended, spelled, sent, fine) = told(lab, "scoped", [
        ("ls", "t.txt | wc -l"), ("ls", "t.txt && ls u.txt"), ("grep", "-c b *.txt"), ("grep", "-c 'a|b' t.txt"),
        ("find", ". -name u.txt -exec cat {} ;"), ("env", "printf $'a\\tb\\x21'"), ("env", "printf hi > out.txt"), ("grep", "-c b t.txt")],
        ("ls", "grep", "find", "cat", "env", "printf"), files)
    assert "No shell read this command: | went to ls as a plain word" in piped.text and "shell.allow: [bash]" in piped.text, piped
    assert "&& went to ls" in listed.text and "*.txt went to grep" in pattern.text, (listed, pattern)
    assert spelled.stdout == "a\tb!", spelled
    assert "> went to env" in sent.text, sent
    for answer in (quoted, ended, spelled, fine):
        assert answer.code == 0 and "No shell" not in answer.text, answer


@pytest.mark.parametrize("tier", CLASSES)
def test_report_17_git_works_beside_a_system_configuration_and_tells_no_secret_of_it(lab, tier):
    """The host's file may hold helpers and addresses with tokens: what commands see of it holds neither."""
    _, (init, status, shown) = told(lab, tier, [("git", "init -q ."), ("git", "status --short"), ("git", "config --list --system")],
                                    ("git",), {"a": "1"})
    assert init.code == 0 and status.stdout == "?? a\n", status
    assert "credential" not in shown.stdout and "helper" not in shown.stdout and "://" not in shown.stdout


@pytest.mark.parametrize("tier", CLASSES)
def test_report_19_characters_are_characters(lab, tier):
    _, (characters,) = told(lab, tier, [("bash", 'printf "é漢" | wc -m; echo é漢 | sed "s/./X/g"; echo aé | cut -c1')],
                            ("bash", "wc", "sed", "cut"), env={"LANG": "C.UTF-8"})
    assert characters.stdout == "2\nXX\na\n", characters


@pytest.mark.parametrize("tier", CLASSES)
def test_report_20_reserved_addresses_are_not_memory(lab, tier):
    _, (wasm,) = told(lab, tier, [("node", "-e 'new WebAssembly.Memory({initial: 8}); console.log(1)'")], ("node",))
    assert wasm.stdout == "1\n", wasm


@pytest.mark.parametrize("tier", CLASSES)
def test_report_20_a_bound_that_is_written_holds(lab, tier):
    _, (wasm,) = told(lab, tier, [("node", "-e 'new WebAssembly.Memory({initial: 8}); console.log(1)'")], ("node",),
                      resources={"memory_bytes": 2 << 30})
    assert wasm.code != 0


@pytest.mark.parametrize("tier", CLASSES)
def test_report_21_locks_and_shared_memory_are_the_sessions_own(lab, tier):
    mark = f"/dev/shm/murmur-test-{os.getpid()}"
    _, (lock, left, seen) = told(lab, tier, [("python3", '-c "import multiprocessing as m; m.Lock(); print(1)"'),
                                             ("bash", f"echo mine > {mark}"), ("bash", f"read x < {mark}; echo $x")],
                                 ("python3", "bash"))
    assert lock.stdout == "1\n", lock
    assert left.code == 0 and seen.stdout == "mine\n", "the next command of the session sees it"
    assert not os.path.exists(mark), "the host does not"


@pytest.mark.parametrize("tier", CLASSES)
def test_report_23_localhost_and_the_own_user_have_names(lab, tier):
    code = ("import socket,getpass,pwd,os;print(socket.getaddrinfo('localhost',80,0,1)[0][4][0], getpass.getuser(), "
            "pwd.getpwuid(os.getuid()).pw_dir == os.environ['HOME'])")
    _, (names, users) = told(lab, tier, [("python3", f'-c "{code}"'), ("bash", "grep -c : /etc/passwd")], ("python3", "bash", "grep"))
    address, _, is_home = names.stdout.split()
    assert address in ("127.0.0.1", "::1") and is_home == "True", names
    assert int(users.stdout) <= 2, "no other user of the host is named"


@pytest.mark.parametrize("tier", CLASSES)
def test_report_24_a_version_managers_script_leads_to_its_program(lab, tier):
    needs(lab, tier)
    root = lab.directory / "manager/.pyenv"
    (root / "shims").mkdir(parents=True)
    (root / "versions/3.99.1/bin").mkdir(parents=True)
    (root / "version").write_text("3.99.1\n")
    (root / "shims/tool").write_text('#!/usr/bin/env bash\nexec pyenv exec "${0##*/}" "$@"\n')
    shutil.copy(shutil.which("echo", path="/usr/bin:/bin"), root / "versions/3.99.1/bin/tool")
    (root / "shims/tool").chmod(0o755)
    project = command_agent(lab, [call("tool", "from the version"), call("bash", "tool again")], shell=("tool", "bash"),
                            capabilities={"containment": tier})
    env = {"PATH": f"{root}/shims:{PATH}", "PYENV_VERSION": None}
    project.run("--task", "go", "--workdir", project / "work", env=env).ok()
    direct, by_shell = answers(project)
    assert direct.stdout == "from the version\n" and by_shell.stdout == "again\n", (direct, by_shell)

    (root / "version").write_text("3.99.2\n")
    result = project.run("--task", "go", "--workdir", project / "work", env=env).failed("E-CAP-006")
    assert "3.99.2 has no tool" in result.stderr and "pyenv install 3.99.2" in result.stderr


def test_report_24_a_wrapper_of_one_line_is_what_it_starts(lab):
    needs(lab, "sealed")
    folder = lab.directory / "wrappers"
    folder.mkdir()
    (folder / "say").write_text('#!/usr/bin/env bash\n# by hand\nexec /usr/bin/echo "$@"\n')
    (folder / "say").chmod(0o755)
    for tier in CLASSES:
        project = command_agent(lab, [call("say", "hello")], shell=("say",), name=f"wrapped-{tier}", capabilities={"containment": tier})
        project.run("--task", "go", "--workdir", project / "work", env={"PATH": f"{folder}:{PATH}"}).ok()
        assert answers(project)[0].stdout == "hello\n"


@pytest.mark.parametrize("tier", CLASSES)
def test_report_26_a_program_starts_the_helpers_of_its_own_folder(lab, tier):
    _, (*_, remote) = told(lab, tier, [("git", "init -q -b main ."), ("git", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m x"),
                                       ("git", "clone -q . c"), ("git", "-C c submodule status"), ("git", "ls-remote .")], ("git",))
    assert remote.stdout.endswith("refs/heads/main\n"), remote


@pytest.mark.parametrize("tier", CLASSES)
@pytest.mark.parametrize("line", ["ln -s tests alias; echo changed > alias/t.txt", "ln tests/t.txt h && echo changed > h",
                                  "mv tests away; echo changed > away/t.txt", "echo changed > ./tests//t.txt", "rm -rf tests"])
def test_report_27_a_protected_folder_is_protected_under_every_name(lab, tier, line):
    script = f'cd .; x=tests; {line.replace("> ", ">")}'
    needs(lab, tier)
    project = command_agent(lab, [script], shell=("bash", "ln", "mv", "rm"), capabilities={
        "containment": tier, "filesystem": {"read_only": ["tests"]}})
    project.write("work/tests/t.txt", "orig\n")
    run_commands(project, env={"PATH": PATH})
    assert (project / "work/tests/t.txt").read_text() == "orig\n"


# --- what is private stays private --------------------------------------------------------------------------------------------


PRIVATE = [".ssh/id_ed25519", ".gitconfig", ".git-credentials", ".npmrc", ".netrc", ".pypirc", ".cargo/credentials.toml", ".docker/config.json",
           ".aws/credentials", ".config/gh/hosts.yml", ".gnupg/private.key", ".m2/settings.xml", ".kube/config", "notes.txt",
           ".local/bin/tool", ".config/go/env", ".composer/auth.json", ".gem/credentials", ".cargo/registry/x"]


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_nothing_of_the_persons_home_comes_with_a_recipe(lab, tier):
    """Every family at once: no recipe grants what a person keeps in their home."""
    needs(lab, tier)
    allow = [name for name in ("bash", "cat", "ls", "git", "node", "npm", "python3", "cargo", "go", "gcc", "make", "java", "mvn", "perl",
                               "ruby", "php", "gpg", "ssh-keygen", "curl", "docker", "tar", "vim") if shutil.which(name, path=PATH)]
    for name in PRIVATE:
        path = lab.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a secret of the home\n")
    reads = "; ".join(f"cat {lab.home}/{name}" for name in PRIVATE)
    project = command_agent(lab, [reads, f"ls {lab.home} {lab.home}/.ssh", "cat ~/.gitconfig ~/.npmrc; git config --list", "cat /etc/shadow /etc/sudoers"],
                            shell=allow, capabilities={"containment": tier, "filesystem": {"workdir_exec": "walled"}})
    session, answered = run_commands(project, env={"PATH": PATH})
    for answer in answered:
        assert "secret" not in answer.text and "root:$" not in answer.text, answer
    assert "notes.txt\n" not in answered[1].stdout
    assert session.trace.one("session_start")["effective_grants"]["achieved_containment"] == tier


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_what_the_work_made_runs_inside_every_wall(lab, tier, tmp_path_factory):
    """workdir_exec: walled gives up shell.allow alone: the class stays, and a copied program meets the same walls."""
    needs(lab, tier)
    secret = lab.home / "secret"
    secret.write_text("a secret of the home\n")
    project = command_agent(lab, ["cp /bin/cat mine; cp /bin/cat /tmp/mine; cp /bin/cat ~/mine; for p in ./mine /tmp/mine ~/mine; do echo hi | $p; done",
                                  f"./mine {secret}; echo x > {lab.home}/planted", "./mine /etc/shadow", "./mine < /dev/tcp/192.0.2.1/80"],
                            shell=("bash", "cp", "cat", "echo"), capabilities={"containment": tier, "filesystem": {"workdir_exec": "walled"}})
    session, (ran, read, shadow, network) = run_commands(project, env={"PATH": PATH})
    assert ran.stdout == "hi\nhi\nhi\n", ran
    assert "a secret" not in read.text and not (lab.home / "planted").exists()
    assert shadow.code != 0 and network.code != 0
    grants = session.trace.one("session_start")["effective_grants"]
    assert grants["achieved_containment"] == tier and grants["workdir_exec"] and grants["workdir_exec_walled"]
    report = project.run("--explain-scope", env={"PATH": PATH}).ok().stdout
    assert "workdir exec:     walled" in report and "shell.allow does not bound which code runs, only the walls do" in report
    assert "W-SEC-011" not in project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH}).ok().stderr


def test_everyday_a_word_that_is_no_workdir_exec_is_refused(lab):
    project = lab.agent(steps=[{"text": "x"}], capabilities={"filesystem": {"workdir_exec": "open"}})
    result = project.run("--task", "x").failed("E-MAN-002")
    assert "one of false, true, walled" in result.stderr


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_an_allowed_shell_still_starts_nothing_else(lab, tier):
    """What is readable for everyone is not executable, and the loader of the libraries starts no program either."""
    other = shutil.which("id", path="/usr/bin:/bin")
    loader = next((path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(path)), None)
    if tier == "sealed":
        loader = None
    _, (direct, loaded) = told(lab, tier, [("bash", other), ("bash", f"{loader or other} {other}")], ("bash",))
    assert direct.code == 126 and loaded.code != 0 and "uid=" not in loaded.stdout, loaded


def test_everyday_explain_scope_tells_what_a_program_brings(lab):
    if not shutil.which("git", path=PATH):
        pytest.skip("git is not installed")
    project = lab.agent(steps=[{"text": "x"}], capabilities={"shell": {"allow": ["git"]}})
    text = project.run("--explain-scope", env={"PATH": PATH}).ok().stdout
    assert "program parts:\n    - git: with the parts of git; starts sh and the tools of shell scripts, " in text
    assert "never given: ~/.gitconfig, credential helpers" in text
    report = project.run("--explain-scope", "--json", env={"PATH": PATH}).ok().json
    assert report["program_parts"][0].startswith("git: with the parts of git")


def test_everyday_the_bare_host_does_what_the_jobs_ask():
    """The words of a job are right: the host itself answers them."""
    done = subprocess.run(["bash", "-c", 'printf "é漢" | wc -m'], capture_output=True, text=True, env={"LANG": "C.UTF-8", "PATH": PATH})
    assert done.stdout == "2\n"


# --- a refusal tells ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_a_refusal_names_what_and_the_key_that_would_grant_it(lab, tier):
    private = lab.home / "notes.txt"
    private.write_text("x\n")
    project_files = {"s.sh": "#!/bin/bash\necho ran\n"}
    session, (program, by_name, file, work, host, protected, quiet) = told(lab, tier, [
        ("bash", shutil.which("id", path="/usr/bin:/bin")), ("bash", "id; id; id"), ("bash", f"cat {private}; cat {private}"),
        ("bash", "chmod +x s.sh; ./s.sh"), ("curl", "-sS http://not-granted.example/x"),
        ("bash", "ln -s kept k; echo x > k/f"), ("bash", "cat missing.txt; false")],
        ("bash", "cat", "chmod", "curl", "ln"), {**project_files, "kept/f": "1\n"}, filesystem={"read_only": ["kept"]})
    said = {answer.text.count("Refused by this capsule: ") for answer in (program, by_name, file, work, host)}
    assert said == {1}, [answer.text for answer in (program, by_name, file, work, host)]
    assert "/id is no program of this capsule (shell.allow: [id])" in program.text and "shell.allow: [id]" in by_name.text
    assert f"{private} lies outside what commands may read" in file.text
    assert "s.sh is a file of the work, which do not run here (filesystem.workdir_exec: walled lets them)" in work.text
    assert "not-granted.example is no host of this capsule (network.allow: [not-granted.example])" in host.text
    assert "kept/f may not be changed (filesystem.read_only)" in protected.text
    assert "Refused" not in quiet.text, "what is simply not there is no refusal"
    refusals = [event.get("refusals") for event in session.trace.all("shell")]
    assert refusals[0][0] in program.text and refusals[-1] is None


# --- a program nobody knows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", CLASSES)
def test_everyday_doctor_learn_prints_the_block_that_lets_a_program_run(lab, tier):
    needs(lab, tier)
    folder = Path(tempfile.mkdtemp(prefix="murmur-learn-", dir="/var/tmp"))
    try:
        for part in ("bin", "parts", "data"):
            (folder / part).mkdir()
        shutil.copy(shutil.which("cat", path="/usr/bin:/bin"), folder / "parts/helper")
        (folder / "data/words").write_text("what it read\n")
        (lab.home / "mine.txt").write_text("private\n")
        (folder / "bin/mytool").write_text(f'#!/bin/sh\nread x < {lab.home}/mine.txt\nof={folder}/parts/\nexec "$of"helper {folder}/data/words\n')
        (folder / "bin/mytool").chmod(0o755)
        env = {"PATH": f"{folder}/bin:{PATH}"}
        project = command_agent(lab, [call("mytool")], shell=("mytool",), capabilities={"containment": tier})
        project.run("--task", "go", "--workdir", project / "work", env=env)
        assert not any("what it read" in answer.stdout for answer in answers(project)) if (project / "work/conversation.json").exists() else True

        printed = project.mur("doctor", "--learn", "mytool", env=env).ok().stdout
        block = yaml.safe_load(printed[printed.index("capabilities:"):])["capabilities"]
        assert {entry["path"] for entry in block["shell"]["interpreter_runtime"][0]["dirs"]} >= {f"{folder}/parts", f"{folder}/data"}
        assert str(lab.home) not in str(block)
        block["containment"] = tier
        learned = command_agent(lab, [call("mytool")], shell=None, name="learned", capabilities=block)
        learned.run("--task", "go", "--workdir", learned / "work", env=env).ok()
        assert answers(learned)[0].stdout == "what it read\n", answers(learned)[0]
    finally:
        shutil.rmtree(folder)


def test_everyday_doctor_learn_says_what_it_cannot_learn(lab):
    assert "no-such-tool is not on PATH" in lab.mur("doctor", "--learn", "no-such-tool").failed("E-IO-001").stderr
    assert "takes a program's name" in lab.mur("doctor", "--learn", "/bin/ls").failed("E-IO-003").stderr
    assert "arguments go with --learn" in lab.mur("doctor", "x").stderr
