# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day, sixth part: work that takes several programs at once (a build that tests and packs, a server with its client,
# a script with all a shell has), and families the other parts lack. See everyday.py.

from .everyday import START, WHO, A, Job, bash
from .everyday_families import WAIT

SHELL_WORK = r"""
trap 'echo ended' EXIT
trap 'echo asked' USR1
kill -USR1 $$
cat <<-'END' | tr a-z A-Z
	here
	END
diff <(printf 'a\nb\n') <(printf 'a\nc\n') | grep -c '^[<>]'
sleep 0.2 & sleep 0.1 & wait -n; wait; jobs | wc -l
coproc tr a-z A-Z; echo two >&"${COPROC[1]}"; exec {COPROC[1]}>&-; cat <&"${COPROC[0]}"
exec 5>log; echo five >&5; exec 5>&-; cat log
read -r a b <<< 'x y'; echo "$b$a"
set -o pipefail; false | true; echo $?
( ulimit -n 64; ulimit -n )
printf '%s\n' {1..3} | xargs -P3 -I{} sh -c 'echo {}' | sort | tr -d '\n'
"""

SEVERAL = [
    bash("make calls gcc, python and tar", "make -s pack && tar tf a.tar | sort | tr '\\n' ' '", "^a b.txt $", ("make", "gcc", "python3", "tar"), files={
        "a.c": '#include <stdio.h>\nint main(void) { puts("from c"); }\n', "g.py": "import pathlib, subprocess\npathlib.Path('b.txt').write_text(subprocess.run(['./a'], capture_output=True, text=True).stdout)\n",
        "Makefile": "pack: a b.txt\n\ttar cf a.tar a b.txt\na: a.c\n\tgcc -O1 -o $@ $<\nb.txt: a g.py\n\tpython3 g.py\n"}, walled=True),
    bash("all a shell has", SHELL_WORK, "^asked\nHERE\n2\n0\nTWO\nfive\nyx\n1\n64\n123ended$", ("diff",)),
    bash("a script of one's own with options", "bash ./run.sh -v -n 3 one two", "^v=1 n=3 one,two$", files={
        "run.sh": '#!/bin/bash\nset -euo pipefail\nwhile getopts vn: o; do case $o in v) v=1;; n) n=$OPTARG;; esac; done\nshift $((OPTIND-1)); IFS=,; echo "v=$v n=$n $*"\n'}),
    bash("node serves, curl asks", f"node s.mjs & {WAIT} curl -s http://127.0.0.1:8123/a && break; sleep 0.2; done; kill %1", "^node saw /a$", ("node", "curl"), files={
        "s.mjs": "import http from 'http'\nhttp.createServer((q, a) => a.end('node saw ' + q.url + '\\n')).listen(8123)\n"}),
    bash("flask serves, wget asks", f"flask -A a run -p 5123 >/dev/null 2>&1 & {WAIT} wget -qO- http://127.0.0.1:5123/ && break; sleep 0.3; done; kill %1", "^from flask$", ("flask", "wget"),
         files={"a.py": "from flask import Flask\napp = Flask('a')\n@app.get('/')\ndef f(): return 'from flask'\n"}),
    bash("openssl serves TLS, curl trusts it", "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null; "
         f"openssl s_server -accept 4433 -key k -cert c -www -quiet & {WAIT} curl -s --cacert c https://localhost:4433/ | grep -c 's_server' && break; sleep 0.2; done; kill %1", r"^\d", ("openssl", "curl")),
    Job("git bisect run", ("git", "bash", "seq", "grep"), [
        ("git", "init -q -b main ."), ("bash", f"for i in $(seq 6); do echo $i > n.txt; git add n.txt; git {WHO} commit -q -m c$i; done"),
        ("git", "bisect start HEAD HEAD~5"), ("git", "bisect run bash -c '! grep -q [456] n.txt'"), ("git", "bisect log")], r"first bad commit.*c4"),
    Job("pre-commit runs a linter", ("pre-commit", "git", "shellcheck"), [("git", "init -q ."), ("git", "add -A"), ("pre-commit", "install"), ("git", f"{WHO} commit -q -m one"), ("git", "log --oneline")], "one$", {
        "a.sh": "#!/bin/sh\necho ok\n",
        ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - {id: s, name: s, entry: shellcheck, language: system, files: '[.]sh$'}\n"}, walled=True),
    Job("cargo: a workspace with a build script", ("cargo",), [("cargo", "test --offline -q --workspace"), ("cargo", "run --offline -q -p app")], "built 42$", {
        "Cargo.toml": '[workspace]\nmembers = ["app", "lib"]\nresolver = "2"\n', "lib/Cargo.toml": '[package]\nname = "l"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n',
        "lib/build.rs": 'fn main() { std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("n.rs"), "pub const N: u32 = 42;").unwrap(); }\n',
        "lib/src/lib.rs": 'include!(concat!(env!("OUT_DIR"), "/n.rs"));\n#[test]\nfn t() { assert_eq!(N, 42) }\n',
        "app/Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nl = { path = "../lib" }\n', "app/src/main.rs": 'fn main() { println!("built {}", l::N) }\n'},
        walled=True, is_heavy=True),
    Job("go: vet, test, generate, build", ("go",), [("go", "generate ./..."), ("go", "vet ./..."), ("go", "test ./..."), ("go", "run .")], "42$", {
        "go.mod": "module a\n\ngo 1.20\n", "a.go": "package main\n\nimport (\n\t\"a/b\"\n\t\"fmt\"\n)\n\n//go:generate go version\nfunc main() { fmt.Println(b.N()) }\n",
        "b/b.go": "package b\n\nfunc N() int { return 42 }\n",
        "b/b_test.go": 'package b\n\nimport "testing"\n\nfunc TestN(t *testing.T) {\n\tif N() != 42 {\n\t\tt.Fail()\n\t}\n}\n'}, walled=True, is_heavy=True),
    bash("cmake, ctest", "cmake -S . -B b > /dev/null && cmake --build b > /dev/null && ctest --test-dir b 2>&1 | grep 'tests passed'", "100% tests passed", ("cmake", "ctest"), files={
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nenable_testing()\nadd_executable(a a.c)\nadd_test(NAME a COMMAND a)\n", "a.c": "int main(void) { return 0; }\n"}, walled=True),
    bash("autotools to make distcheck's kind", "autoreconf -i > /dev/null 2>&1 && ./configure -q && make -s && make -s check > /dev/null && ./a", "^42$", ("autoreconf", "make", "gcc"), files={
        "configure.ac": "AC_INIT([a],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
        "Makefile.am": "bin_PROGRAMS = a\na_SOURCES = a.c\nTESTS = a\n", "a.c": '#include <stdio.h>\nint main(void) { puts("42"); }\n'}, walled=True, needs=("automake",)),
    bash("flex, bison, gcc", "bison -d p.y && flex l.l && gcc -o calc p.tab.c lex.yy.c && echo 6*7 | ./calc", "^42$", ("flex", "bison", "gcc"), files={
        "p.y": '%{\n#include <stdio.h>\nint yylex(void); void yyerror(const char *s) { puts(s); }\n%}\n%token N\n%left \'*\'\n%%\nl: e \'\\n\' { printf("%d\\n", $1); };\ne: N | e \'*\' e { $$ = $1 * $3; };\n%%\nint main(void) { return yyparse(); }\n',
        "l.l": '%{\n#include "p.tab.h"\n#include <stdlib.h>\n%}\n%option noyywrap\n%%\n[0-9]+ { yylval = atoi(yytext); return N; }\n.|\\n { return *yytext; }\n'}, walled=True),
    bash("bear writes what make compiles", "bear -- make -s a && grep -c a.c compile_commands.json", r"^\d", ("bear", "make", "gcc"), files={"a.c": "int main(void) { return 0; }\n"}, walled=True),
    bash("gcov, lcov", "gcc --coverage -o a a.c && ./a && gcov -b a.c 2>/dev/null | head -3; lcov -q -c -d . -o i && lcov --summary i 2>&1 | grep lines", "100", ("gcc", "gcov", "lcov"),
         files={"a.c": "int main(void) { return 0; }\n"}, walled=True),
    bash("gcc's sanitizers", "for s in address undefined thread leak; do gcc -fsanitize=$s -o $s a.c && ./$s && echo $s; done | tr '\\n' ' '", "^address undefined thread leak $", ("gcc",), files={
        "a.c": "int main(void) { return 0; }\n"}, walled=True),
    bash("ccache, gcc", "ccache gcc -c a.c && ccache gcc -c a.c && ccache -s | head -3", "", ("ccache", "gcc"), files={"a.c": "int x;\n"}),
    bash("python: build, install and run a package", "python3 -m venv e && e/bin/pip install -q --no-index --no-build-isolation -e . 2>/dev/null || (cd e && ../e/bin/python -c 'import sys; sys.path.insert(0, \"..\"); import m'); "
         "e/bin/python -c 'import m; print(m.N)'", "^42$", ("python3",), files={"m.py": "N = 42\n", "setup.py": "from setuptools import setup\nsetup(name='m', py_modules=['m'])\n"}, walled=True),
    Job("pytest: fixtures, a temporary folder, a subprocess", ("pytest",), [("pytest", "-q -p no:cacheprovider")], "3 passed", {
        "test_a.py": "import subprocess, sys\ndef test_t(tmp_path): (tmp_path / 'a').write_text('x')\n"
                     "def test_s(): assert subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout == b'1\\n'\n"
                     "def test_c(capfd, monkeypatch): monkeypatch.chdir('/tmp'); print('x'); assert capfd.readouterr().out == 'x\\n'\n"}),
    bash("npm workspaces", "npm install -s --offline --no-audit --no-fund && npm run -s go -w b", "^from a$", ("npm", "node"), files={
        "package.json": '{"name":"r","private":true,"workspaces":["a","b"]}', "a/package.json": '{"name":"@x/a","version":"1.0.0","main":"i.js"}', "a/i.js": "module.exports = 'from a'\n",
        "b/package.json": '{"name":"@x/b","version":"1.0.0","scripts":{"go":"node -p \\"require(\'@x/a\')\\""},"dependencies":{"@x/a":"*"}}'}),
    Job("node --test with several files", ("node",), [("node", "--test")], "# pass 2|pass 2", {
        "a.test.mjs": "import test from 'node:test'\ntest('a', () => {})\n", "b.test.mjs": "import test from 'node:test'\ntest('b', () => {})\n"}),
    bash("java: compile, jar, run", "javac -d o A.java && jar cfe a.jar A -C o . && java -jar a.jar", "^42$", ("javac", "jar", "java"), files={"A.java": "public class A { public static void main(String[] a) { System.out.println(42); } }\n"}, is_heavy=True),
    bash("patch, diff, ed, ex", "diff -u a b > p; patch -s a p && cmp a b; printf '1s/two/three/\\nw\\nq\\n' | ed -s a; ex -sc '%s/three/four/|x' a; cat a", "^four$", ("diff", "patch", "cmp", "ed", "ex"), files={"a": "one\n", "b": "two\n"}),
    bash("expect, script: a terminal of one's own", "script -qec 'tty' /dev/null; HOME=/tmp expect -c 'spawn -noecho sh; send \"echo \\$((6*7)); exit\\r\"; expect 42; expect eof'", "42", ("script", "expect", "tty")),
    bash("inotifywait, entr", "(sleep 0.3; touch d/x) & inotifywait -qq -t 10 d && echo seen; echo a.txt | entr -nz echo changed", "seen\nchanged", ("inotifywait", "entr"), files={"d/y": "", "a.txt": ""}),
    bash("archives of every kind", "for z in gzip bzip2 xz zstd; do tar -c --$z -f a.$z d && tar -x --$z -O -f a.$z d/y; done; zip -qr a.zip d && unzip -p a.zip d/y; 7z a -bso0 a.7z d && 7z x -so a.7z d/y; find d | cpio -o --quiet 2>/dev/null | cpio -it --quiet | wc -l",
         "^(y\n){6}2$", ("tar", "gzip", "bzip2", "xz", "zstd", "zip", "unzip", "7z", "cpio"), files={"d/y": "y\n"}),
    bash("svn", "svnadmin create r && svn co -q file://$PWD/r w && cd w && echo a > a && svn add -q a && svn ci -q -m one && svn up -q && svn log -q | grep -c '^r1'", "^1$", ("svn", "svnadmin")),
    bash("hg", "hg init r && cd r && echo a > a && hg add -q a && hg commit -u a -m one && hg log --template '{desc}'", "^one$", ("hg",)),
    Job("git: a commit signed by ssh", ("git", "ssh-keygen"), [("ssh-keygen", "-q -t ed25519 -N '' -f k"), ("git", "init -q ."), ("git", "add a.txt"),
        ("git", f"{WHO} -c gpg.format=ssh -c user.signingkey=k.pub commit -q -S -m signed"), ("git", "cat-file -p HEAD")], "BEGIN SSH SIGNATURE", A),
    Job("git archive, bundle, am", ("git", "tar"), [*START, ("git", "bundle create -q b.bundle main"), ("git", "clone -q b.bundle c"), ("git", "format-patch -q -1 --root -o p"), ("git", "archive -o a.tar HEAD"), ("tar", "tf a.tar")], "^a.txt$", A),
]

ALONE = [
    bash("what runs and what it uses", "ps aux | grep -c bash; top -bn1 | grep -c Tasks; free -m | grep -c Mem; lscpu | grep -c Arch; ss -ltn | grep -c State; ip addr | grep -c 127.0.0.1", "^\\d+\\n1\\n1\\n1\\n1\\n1$",
         ("ps", "top", "free", "lscpu", "ss", "ip")),
    Job("gnuplot", ("gnuplot",), [("gnuplot", "-e 'set term dumb; plot sin(x)'")], "sin"),
    Job("gnuplot to a picture", ("gnuplot",), [("gnuplot", "-e \"set term png; set output 'a.png'; plot x\"")], ""),
    Job("maxima starts itself again at fixed addresses", ("maxima",), [("maxima", "--very-quiet --batch-string='print(6*7);'")], "42"),
    bash("fixed addresses and an older name", "setarch -R sed -n /stack/p /proc/self/maps > a; setarch -R sed -n /stack/p /proc/self/maps | cmp - a && setarch --uname-2.6 uname -r", r"^2\.6\.",
         ("setarch", "cmp", "sed", "uname")),
    Job("units", ("units",), [("units", "-t '1 inch' cm")], "2.54"),
    Job("gawk", ("gawk",), [("gawk", "'BEGIN { printf \"%s\\n\", strftime(\"%Y\", 0); \"echo 42\" | getline x; print x }'")], "42$"),
    Job("m4", ("m4",), [("m4", "a.m4")], "^hi 6$", {"a.m4": "define(x, hi)dnl\nx eval(2*3)\n"}),
    Job("cscope", ("cscope",), [("cscope", "-bR"), ("cscope", "-dL1 main")], "main", {"a.c": "int main(void) { return 0; }\n"}),
    Job("lua: a program of its own", ("lua5.4",), [("lua5.4", "-e 'print(6*7) local f = io.popen(\"echo hi\") print(f:read(\"a\"))'")], "42\nhi"),
    Job("guile", ("guile",), [("guile", "--no-auto-compile -c '(display (* 6 7))'")], "42"),
    Job("elixir", ("elixir",), [("elixir", "-e 'IO.puts 42'")], "42", is_heavy=True),
    bash("memcached", f"memcached -u $(whoami) -l 127.0.0.1 -p 11999 & {WAIT} printf 'set a 0 0 2\\r\\nhi\\r\\nget a\\r\\nquit\\r\\n' | nc -w 2 127.0.0.1 11999 && break; sleep 0.2; done; kill %1", "hi", ("memcached", "nc")),
    Job("exiftool", ("exiftool",), [("exiftool", "-T -FileType a.txt")], "TXT", A),
    bash("gs, qpdf, pdftotext", "gs -q -sDEVICE=pdfwrite -o a.pdf a.ps && qpdf --check a.pdf > /dev/null && pdftotext a.pdf - | head -1", "^hello$", ("gs", "qpdf", "pdftotext"),
         files={"a.ps": "%!\n/Helvetica 20 selectfont 72 700 moveto (hello) show showpage\n"}),
    bash("tesseract reads a picture", "convert -size 300x80 -background white -fill black -gravity center -pointsize 40 label:MURMUR a.png && tesseract a.png - 2>/dev/null", "MURMUR", ("convert", "tesseract")),
    bash("protoc", "protoc --python_out=. --descriptor_set_out=d a.proto && ls", "a_pb2.py", ("protoc", "ls"), files={"a.proto": 'syntax = "proto3";\nmessage A { int32 n = 1; }\n'}),
    Job("direnv", ("direnv",), [("direnv", "version")], r"^\d"),
    Job("shellcheck", ("shellcheck",), [("shellcheck", "a.sh")], "", {"a.sh": "#!/bin/sh\necho ok\n"}),
    bash("sox", "sox -n a.wav synth 0.1 sine 440 && soxi -r a.wav", r"^\d+$", ("sox", "soxi")),
    Job("hugo", ("hugo",), [("hugo", "new site s"), ("hugo", "-s s --quiet")], ""),
    Job("asciidoctor", ("asciidoctor",), [("asciidoctor", "-e -o - a.adoc")], "<p>text</p>", {"a.adoc": "= Hi\n\ntext\n"}),
    Job("scons", ("scons", "gcc"), [("scons", "-Q")], "up to date|a.o", {"SConstruct": "Object('a.c')\n", "a.c": "int x;\n"}),
    Job("cppcheck", ("cppcheck",), [("cppcheck", "--error-exitcode=1 -q a.c")], "", {"a.c": "int x;\n"}),
    Job("clang-tidy: one line", ("clang-tidy",), [("clang-tidy", "a.c --")], "", {"a.c": "int x;\n"}),
    bash("clang, lld", "clang -fuse-ld=lld -o a a.c && ./a && echo ran", "^ran$", ("clang", "lld", "ld.lld"), files={"a.c": "int main(void) { return 0; }\n"}, walled=True),
    bash("nim", "nim c --hints:off -r a.nim", "42", ("nim",), files={"a.nim": "echo 42\n"}, walled=True, is_heavy=True),
    Job("jekyll", ("jekyll",), [("jekyll", "--version")], "jekyll"),
    bash("gem, bundle, rake", "gem list -q > /dev/null && bundle --version > /dev/null && rake -q", "^raked$", ("gem", "bundle", "rake"), files={"Rakefile": "task(:default) { puts 'raked' }\n"}),
    bash("sqlite3 and its import", "sqlite3 a.db '.mode csv' '.import a.csv t' 'select sum(n) from t'", "^42", ("sqlite3",), files={"a.csv": "n\n40\n2\n"}),
    bash("rsync to another folder, deleting", "rsync -a --delete s/ d/ && ls d", "^y$", ("rsync", "ls"), files={"s/y": "y", "d/x": "x"}),
]

COMBINED = [*SEVERAL, *ALONE]
