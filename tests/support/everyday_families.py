# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day, fourth part: one or two for each family of programs that people install by name, from a distribution or a
# registry, granted by that name alone. See everyday.py.

from .everyday import START, WHO, A, Job, bash

WAIT = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do"
NOTEBOOK = ('{"cells":[{"cell_type":"code","execution_count":null,"id":"a","metadata":{},"outputs":[],"source":["print(6*7)"]}],'
            '"metadata":{"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"}},"nbformat":4,"nbformat_minor":5}')
MAIN = {"a.c": "int main(void) { return 0; }\n"}

PYTHONS = [
    Job("ruff", ("ruff",), [("ruff", "check --isolated a.py"), ("ruff", "format --isolated a.py")], "", {"a.py": "import os\n\nprint(os.name)\n"}),
    Job("black, several files at once", ("black",), [("black", "-q ."), ("black", "--check -q .")], "", {f"a{i}.py": "x = { 'a':1 }\n" for i in range(3)}),
    Job("mypy", ("mypy",), [("mypy", "a.py")], "Success", {"a.py": "def f(x: int) -> int:\n    return x\n"}),
    Job("poetry", ("poetry",), [("poetry", "new lib"), ("poetry", "--version")], "Poetry"),
    Job("uv: a virtual environment, run", ("uv",), [("uv", "venv --offline -q env"), ("uv", "run --offline --no-project python -c 'print(6*7)'")], "^42$"),
    Job("ipython", ("ipython",), [("ipython", "--no-banner -c 'print(6*7)'")], "42"),
    Job("jupyter: a notebook is executed", ("jupyter",), [("jupyter", "nbconvert --to notebook --execute n.ipynb --output o.ipynb"), ("jupyter", "nbconvert --to markdown --stdout o.ipynb")],
        "42", {"n.ipynb": NOTEBOOK}, needs=("jupyter-nbconvert",)),
    Job("tox", ("tox", "python3"), [("tox", "-q -e x")], "", {"tox.ini": "[tox]\nno_package=true\n[testenv:x]\nskip_install=true\ncommands=python -c 'print(42)'\n"}, walled=True),
    Job("flake8, isort, pylint", ("flake8", "isort", "pylint"), [("isort", "a.py"), ("flake8", "a.py"), ("pylint", "--disable=all --enable=E a.py")], "", {"a.py": "X = 1\n"}),
]

NODES = [
    Job("eslint", ("eslint",), [("eslint", "a.js")], "", {"a.js": "const a = 1;\n", "eslint.config.mjs": "export default [];\n"}),
    Job("prettier", ("prettier",), [("prettier", "--write a.js"), ("prettier", "--check .")], "Prettier", {"a.js": "const  a=1\n"}),
    Job("esbuild", ("esbuild", "node"), [("esbuild", "a.ts --bundle --outfile=o.js --platform=node"), ("node", "o.js")], "^7$",
        {"a.ts": "import {b} from './b'\nconsole.log(b as number)\n", "b.ts": "export const b: number = 7\n"}),
    Job("vite build", ("vite",), [("vite", "build")], "built in", {"index.html": "<script type=module src=/m.js></script>", "m.js": "console.log(1)\n", "package.json": "{}"}),
    Job("vitest", ("vitest",), [("vitest", "run --globals")], "1 passed", {"a.test.js": "test('x', () => { expect(1).toBe(1) })\n", "package.json": "{}"}),
    Job("jest", ("jest",), [("jest", "--version")], r"^\d"),
    Job("tsx", ("tsx",), [("tsx", "a.ts")], "^7$", {"a.ts": "const a: number = 7; console.log(a)\n"}),
    Job("yarn: a script", ("yarn",), [("yarn", "-s go")], "^by yarn$", {"package.json": '{"name":"a","version":"1.0.0","license":"MIT","scripts":{"go":"echo by yarn"}}'}),
    Job("node: the addresses of its own network", ("node",), [("node", "-p 'Object.keys(os.networkInterfaces()).join()'")], "^lo$"),
]

COMPILERS = [
    Job("cmake, granted alone", ("cmake",), [("cmake", "-B b ."), ("cmake", "--build b")], "", {
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n", **MAIN}, walled=True, needs=("cc", "make")),
    Job("meson and ninja", ("meson", "ninja"), [("meson", "setup b"), ("ninja", "-C b"), ("meson", "test -C b")], r"Ok:\s+1", {
        "meson.build": "project('a', 'c')\ntest('t', executable('a', 'a.c'))\n", **MAIN}, walled=True, needs=("cc",)),
    Job("ocaml", ("ocaml", "ocamlopt"), [("ocamlopt", "-o a a.ml"), ("ocaml", "a.ml")], "42", {"a.ml": "print_int 42;;\n"}),
    Job("sbcl", ("sbcl",), [("sbcl", "--noinform --non-interactive --eval '(print (* 6 7))'")], "42"),
    Job("valgrind", ("valgrind", "gcc"), [("gcc", "-g a.c -o a"), ("valgrind", "-q ./a")], "", MAIN, walled=True),
    Job("gdb reads a program", ("gdb", "gcc"), [("gcc", "-g a.c -o a"), ("gdb", "-batch -ex 'info functions main' a")], "main", MAIN),
    Job("clang-tidy", ("clang-tidy",), [("clang-tidy", "a.c --")], "", MAIN),
    Job("cargo test, a vendored crate", ("cargo", "rustc"), [("cargo", "test -q --offline")], "test result: ok", {
        "Cargo.toml": "[package]\nname='a'\nversion='0.1.0'\nedition='2021'\n[dependencies]\ndep={version='1'}\n",
        ".cargo/config.toml": "[source.crates-io]\nreplace-with='v'\n[source.v]\ndirectory='vendor'\n",
        "vendor/dep/Cargo.toml": "[package]\nname='dep'\nversion='1.0.0'\nedition='2021'\n", "vendor/dep/.cargo-checksum.json": '{"files":{}}',
        "vendor/dep/src/lib.rs": "pub fn f() -> i32 { 42 }\n", "src/lib.rs": "#[test]\nfn t() { assert_eq!(dep::f(), 42) }\n"}, walled=True, is_heavy=True),
    Job("go test -race, interfaces", ("go", "gcc"), [("go", "test -race ./...")], "ok", {
        "go.mod": "module m\ngo 1.20\n",
        "a_test.go": "package m\n\nimport (\n\t\"net\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n\tif _, e := net.Interfaces(); e != nil {\n\t\tt.Fatal(e)\n\t}\n}\n"}, walled=True, is_heavy=True),
    Job("doxygen", ("doxygen",), [("doxygen", "-g"), ("doxygen", "Doxyfile")], "", {"a.c": "/** x */ int x;\n"}),
    Job("ctags", ("ctags",), [("ctags", "-f tags a.c")], "", MAIN),
]

REST = [
    Job("tar: an archive of another owner", ("tar",), [("tar", "cf a.tar --owner=1234 --group=1234 f"), ("tar", "xf a.tar")], "", {"f": "a\n"}),
    Job("git lfs", ("git", "git-lfs"), [("git", "init -q -b main ."), ("git", "lfs install --local"), ("git", "lfs track '*.bin'"), ("git", "add -A"),
                                        ("git", f"{WHO} commit -q -m one"), ("git", "lfs ls-files")], "a.bin", {"a.bin": "x" * 100}),
    bash("git rebase -i by GIT_SEQUENCE_EDITOR", f"git init -q -b main .; for i in 0 1 2 3; do echo $i > f$i; git add f$i; git {WHO} commit -q -m c$i; done; "
         f"GIT_SEQUENCE_EDITOR=\"sed -i -e '2s/pick/fixup/'\" git {WHO} rebase -q -i HEAD~3; git log --format=%s", "^c3\nc1\nc0$", ("git",)),
    bash("git: a commit signed by an ssh key", f"ssh-keygen -q -t ed25519 -N '' -f k; git init -q -b main .; git add a.txt; "
         f"git {WHO} -c gpg.format=ssh -c user.signingkey=k.pub commit -q -S -m one && git cat-file -p HEAD | grep -c 'BEGIN SSH'", "^1$", ("git", "ssh-keygen"), files=A),
    bash("git daemon and clone", f"git init -q -b main .; git add a.txt; git {WHO} commit -q -m one; touch .git/git-daemon-export-ok; "
         f"git daemon --listen=127.0.0.1 --port=9418 --base-path=. --export-all > /dev/null 2>&1 & {WAIT} git clone -q git://127.0.0.1/.git c 2>/dev/null && break; sleep 0.2; done; cat c/a.txt; kill %1",
         "^one$", ("git",), files=A),
    Job("git archive, bundle, gc, fsck", ("git",), [*START, ("git", "archive -o a.tar.gz HEAD"), ("git", "bundle create b.bundle main"), ("git", "clone -q -b main b.bundle c"), ("git", "gc -q"), ("git", "fsck")], "", A),
    bash("ssh-agent and ssh-add", "ssh-keygen -q -t ed25519 -N '' -f k; eval $(ssh-agent) >/dev/null; ssh-add -q k && ssh-add -l; ssh-agent -k >/dev/null", "ED25519", ("ssh-agent", "ssh-add", "ssh-keygen")),
    Job("parallel, granted alone", ("parallel",), [("parallel", "-k echo x{} ::: 1 2 3")], "^x1\nx2\nx3$"),
    Job("yq brings jq", ("yq",), [("yq", ".a a.yml")], "1", {"a.yml": "a: 1\n"}, needs=("jq",)),
    Job("pandoc: a document and a page", ("pandoc",), [("pandoc", "a.md -o o.docx"), ("pandoc", "a.md -t html")], "<h1", {"a.md": "# Hi\n"}),
    Job("graphviz", ("dot",), [("dot", "-Tpng a.dot -o o.png"), ("dot", "-Tsvg a.dot")], "<svg", {"a.dot": "digraph{a->b}"}),
    bash("aspell", "echo helo | aspell -a", "hello", ("aspell",), needs=("aspell",)),
    Job("busybox", ("busybox",), [("busybox", "sh -c 'echo hi | busybox tr a-z A-Z; busybox wc -c a.txt'")], "HI\n4 a.txt", A),
    bash("nginx and curl", f"mkdir -p t; nginx -p $PWD -c n.conf -e stderr & {WAIT} curl -sf http://127.0.0.1:8788/a.txt && break; sleep 0.2; done; nginx -p $PWD -c n.conf -e stderr -s stop; wait", "^one$", ("nginx", "curl"), files={
        **A, "n.conf": "user root root; worker_processes 1; daemon off; pid t/p; error_log stderr; events {} http { access_log off; client_body_temp_path t/a; "
                       "proxy_temp_path t/b; fastcgi_temp_path t/c; uwsgi_temp_path t/d; scgi_temp_path t/e; server { listen 8788; root .; } }"}),
    bash("mariadb: server and client", f"mariadb-install-db --datadir=$PWD/db --auth-root-authentication-method=normal >/dev/null; mariadbd --datadir=$PWD/db --socket=/tmp/m.sock --pid-file=/tmp/m.pid --port=3399 --user=$(id -un) >log 2>&1 & "
         f"{WAIT} mariadb -S /tmp/m.sock -u root -Ne 'select 6*7' 2>/dev/null && break; sleep 0.5; done; kill %1; wait", "^42$", ("mariadbd", "mariadb", "mariadb-install-db"), is_heavy=True),
    bash("rsync", "rsync -a a.txt b/ && cat b/a.txt", "^one$", ("rsync",), files=A),
    bash("zsh, fish, ksh by name", "zsh -c 'print -l a'; fish -c 'echo b'; ksh -c 'echo c'", "^a\nb\nc$", ("zsh", "fish", "ksh")),
    bash("a script started through env -S", "chmod +x s; ./s", "^42$", ("python3",), files={"s": "#!/usr/bin/env -S python3 -u\nprint(42)\n"}, walled=True),
]

FAMILIES = [*PYTHONS, *NODES, *COMPILERS, *REST]
