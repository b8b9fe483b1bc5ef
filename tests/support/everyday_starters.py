# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day, fifth part: programs that start others of their family by themselves (runners of scripts, launchers of a
# virtual machine, drivers of compilers), granted by the one name a person types. See everyday.py.

from .everyday import START, A, Job, bash
from .everyday_families import WAIT

MAIN = {"a.c": "int main(void) { return 0; }\n"}

RUNNERS = [
    Job("zx", ("zx",), [("zx", "a.mjs")], "^hi", {"a.mjs": "const x = await $`echo hi | cat`; console.log(x.stdout)\n"}),
    Job("concurrently", ("concurrently",), [("concurrently", "'echo a' 'echo b'")], "exited with code 0"),
    Job("uvx is uv", ("uvx",), [("uvx", "--version")], "^uvx"),
    Job("pdm: a project", ("pdm",), [("pdm", "init -n"), ("pdm", "run python -c 'print(42)'")], "42", walled=True),
    Job("ansible", ("ansible",), [("ansible", "localhost -c local -m ping")], "pong"),
    Job("pre-commit", ("pre-commit", "git"), [("git", "init -q ."), ("git", "add -A"), ("pre-commit", "run -a")], "Passed", {
        ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - id: x\n    name: x\n    entry: 'true'\n    language: system\n"}),
    Job("composer", ("composer",), [("composer", "dump-autoload -n -q"), ("composer", "validate -n --no-check-publish")], "valid", {
        "composer.json": '{"name":"a/b","description":"x","license":"MIT","autoload":{"psr-4":{"A\\\\":"src/"}}}'}),
    Job("bats", ("bats",), [("bats", "a.bats")], "ok 1|1 test", {"a.bats": "@test 'x' { [ 1 = 1 ]; }\n"}),
    Job("git filter-repo", ("git", "git-filter-repo"), [*START, ("git", "filter-repo --force --path a.txt")], "", A),
    bash("dpkg: a package of one's own", "dpkg -l bash | tail -1 | cut -c1-2; mkdir -p p/DEBIAN; printf 'Package: a\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b.c>\\n"
         "Description: x\\n' > p/DEBIAN/control; dpkg-deb -b p a.deb > /dev/null && dpkg-deb -f a.deb Package", "^ii\na$", ("dpkg", "dpkg-deb")),
]

LAUNCHERS = [
    Job("groovy", ("groovy",), [("groovy", "-e 'println 42'")], "42", is_heavy=True),
    Job("clojure", ("clojure",), [("clojure", "-e '(println 42)'")], "42", is_heavy=True),
    Job("leiningen", ("lein",), [("lein", "version")], "Leiningen", is_heavy=True),
    Job("racket's raco", ("raco",), [("raco", "make a.rkt")], "", {"a.rkt": "#lang racket/base\n(display 42)\n"}),
    Job("escript", ("escript",), [("escript", "a.erl")], "42", {"a.erl": "#!/usr/bin/env escript\nmain(_) -> io:format(\"42~n\").\n"}),
    Job("runghc", ("runghc",), [("runghc", "a.hs")], "42", {"a.hs": "main = print 42\n"}),
    Job("swipl", ("swipl",), [("swipl", "-g 'X is 6*7, print(X), halt'")], "42"),
    Job("octave", ("octave",), [("octave", "--no-gui --eval 'disp(6*7)'")], "42"),
]

DRIVERS = [
    bash("gnatmake", "gnatmake -q a.adb && ./a", "42", ("gnatmake",), files={
        "a.adb": 'with Ada.Text_IO; procedure A is begin Ada.Text_IO.Put_Line ("42"); end A;\n'}, walled=True),
    bash("fpc", "fpc a.pas > /dev/null && ./a", "42", ("fpc",), files={"a.pas": "begin writeln(42) end.\n"}, walled=True),
    bash("valac", "valac a.vala && ./a", "42", ("valac",), files={"a.vala": 'void main () { print ("42\\n"); }\n'}, walled=True),
    bash("mono", "mcs a.cs && mono a.exe", "42", ("mcs", "mono"), files={"a.cs": "class A { static void Main() { System.Console.WriteLine(42); } }\n"}),
    bash("ghc", "ghc -v0 a.hs && ./a", "42", ("ghc",), files={"a.hs": "main = print 42\n"}, walled=True),
    Job("latexmk", ("latexmk",), [("latexmk", "-pdf -quiet a.tex")], "", {"a.tex": "\\documentclass{article}\\begin{document}Hi\\end{document}\n"}, needs=("pdflatex",)),
    bash("make below make shares its jobs", "make -sj4 | sort | tr -d '\\n'", "^ab$", ("make",), files={
        "Makefile": "all: x y\nx:\n\t@$(MAKE) -s -C a\ny:\n\t@$(MAKE) -s -C b\n.PHONY: x y\n", "a/Makefile": "all:\n\t@echo a\n", "b/Makefile": "all:\n\t@echo b\n"}),
]

SERVERS = [
    bash("socat: both ends of a socket with a path", f"socat UNIX-LISTEN:/tmp/s.sock,fork EXEC:cat 2>/dev/null & {WAIT} echo hi | socat - UNIX:/tmp/s.sock 2>/dev/null && break; sleep 0.2; done; kill %1",
         "hi", ("socat",), unix_sockets=True),
    Job("perl: a socket with a path", ("perl",), [("perl", "a.pl")], "^by a path$", {
        "a.pl": "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => '/tmp/p.sock', Listen => 1) or die $!;\n"
                "if (!fork) { my $c = IO::Socket::UNIX->new(Peer => '/tmp/p.sock') or die $!; print $c \"by a path\\n\"; exit }\nprint scalar readline($s->accept);\n"},
        unix_sockets=True),
]

STARTERS = [*RUNNERS, *LAUNCHERS, *DRIVERS, *SERVERS]
