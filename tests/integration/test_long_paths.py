# SPDX-License-Identifier: Apache-2.0
#
# Programs that keep a socket or a name in few bytes (108 of a unix socket, 200 of expect), in a work folder far down.

import shutil

import pytest

DEEP = "/".join(["w" * 60, "v" * 60, "deep"])

PROGRAMS = {
    "python3": ("python3", "import os, socket; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['TMPDIR'] + '/x.sock'); print('bound it')", "bound it"),
    "gpg": ("gpg --batch --passphrase '' --quick-gen-key me && gpg -K", None, "ultimate] me"),
    "ssh-agent": ("ssh-agent -s", None, "SSH_AUTH_SOCK=/tmp/"),
    "tmux": ("tmux -f /dev/null new -d sleep 20 && tmux ls && tmux kill-server", None, "0: 1 windows"),
    "emacs": ("emacs -Q --daemon && emacsclient -e '(+ 40 2)' && emacsclient -e '(kill-emacs)'", None, "42"),
    "expect": ("expect -c 'spawn echo hi; expect eof' && echo expected it", None, "expected it"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_everyday_a_program_with_a_short_name_for_its_socket_in_a_long_work_folder(lab, name):
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    line, script, told = PROGRAMS[name]
    work = lab.directory / DEEP
    work.mkdir(parents=True)
    if script:
        (work / "run.py").write_text(script)
        line = "python3 run.py"
    allowed = [word for word in ("bash", name, "emacsclient", "sleep", "echo", "gpg-agent", "ssh-agent") if shutil.which(word)]
    project = lab.agent(steps=[{"tool_calls": [{"name": "bash", "input": {"command": f'bash -c "{line}"'}}]}, {"text": "{{result}}"}],
                        capabilities={"shell": {"allow": sorted(set(allowed))}, "network": {"unix_sockets": True}})
    session = lab.session(project.run("--task", "go", "--workdir", work, timeout=120).ok())
    assert told in session.result_text and "dumped" not in session.result_text and "Aborted" not in session.result_text
