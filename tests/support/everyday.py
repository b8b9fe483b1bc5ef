# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day: what a person asks of an agent with a shell, each with the names a sensible user would list and what the
# last command must print. Nothing here knows how the walls are made.

import re
from dataclasses import dataclass, field

COREUTILS = ("cat", "chmod", "cp", "cut", "date", "dd", "df", "du", "echo", "env", "head", "id", "ln", "ls", "mkdir", "mkfifo",
             "mktemp", "mv", "nproc", "od", "rm", "seq", "sleep", "sort", "stat", "tail", "tee", "timeout", "touch", "tr", "uname",
             "uniq", "wc", "whoami", "printf", "true")
ONLY_BUILTIN = {"echo", "printf", "true"}  # a shell has them, whatever is installed
SHELL = ("bash", *COREUTILS, "find", "xargs", "grep", "sed", "awk", "flock")


@dataclass
class Job:
    """`calls`: (tool, command) pairs; `says`: a pattern of the last answer's output; every call must end with 0."""

    name: str
    allow: tuple
    calls: list
    says: str
    files: dict = field(default_factory=dict)
    walled: bool = False
    needs: tuple = ()  # further programs the host must have
    unix_sockets: bool = False
    is_heavy: bool = False

    @property
    def id(self):
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")


def python(name, code, says, **more):
    return Job(f"python: {name}", ("python3",), [("python3", "job.py")], says, {"job.py": code, **more.pop("files", {})}, **more)


def node(name, code, says, **more):
    return Job(f"node: {name}", ("node",), [("node", "job.mjs")], says, {"job.mjs": code, **more.pop("files", {})}, **more)


def bash(name, script, says, allow=(), **more):
    return Job(name, (*SHELL, *allow), [("bash", script)], says, **more)


WHO = "-c user.name=a -c user.email=a@b.c"
START = [("git", "init -q -b main ."), ("git", "add a.txt"), ("git", f"{WHO} commit -q -m one")]
A = {"a.txt": "one\n"}

GIT = [
    Job("git status, add, commit, log", ("git",), [*START, ("git", "status --short"), ("git", "log --oneline")], r"^\w+ one$", A),
    Job("git diff, stash, tag, blame", ("git", "bash"), [
        *START, ("git", "tag v1"), ("bash", "echo two >> a.txt"), ("git", "diff --stat"), ("git", f"{WHO} stash"),
        ("git", "stash pop"), ("git", "blame a.txt"), ("git", "describe --tags")], r"^v1$", A),
    Job("git clone (local)", ("git",), [*START, ("git", "clone -q . copy"), ("git", "-C copy log --oneline")], r"^\w+ one$", A),
    Job("git worktree", ("git",), [*START, ("git", "worktree add -q ../work/tree"), ("git", "-C tree status -sb")], "^## tree$", A),
    Job("git rebase", ("git", "bash"), [
        *START, ("git", "checkout -q -b side"), ("bash", "echo s > s.txt"), ("git", "add s.txt"), ("git", f"{WHO} commit -q -m side"),
        ("git", "checkout -q main"), ("bash", "echo m > m.txt"), ("git", "add m.txt"), ("git", f"{WHO} commit -q -m main"),
        ("git", f"{WHO} rebase -q main side"), ("git", "log --format=%s")], "^side\nmain\none$", A),
    Job("git rebase -i, cherry-pick, am", ("git", "bash"), [
        *START, ("bash", "echo two > b.txt"), ("git", "add b.txt"), ("git", f"{WHO} commit -q -m two"),
        ("git", f"{WHO} -c sequence.editor=: rebase -q -i HEAD~1"), ("git", "format-patch -q -1"), ("git", "reset -q --hard HEAD~1"),
        ("git", f"{WHO} am -q 0001-two.patch"), ("git", "checkout -q -b other HEAD~1"), ("git", f"{WHO} cherry-pick main"),
        ("git", "log --format=%s")], "^two\none$", A),
    Job("git submodule add", ("git",), [
        ("git", "init -q -b main lib"), ("git", f"-C lib {WHO} commit -q --allow-empty -m lib"), ("git", "init -q -b main top"),
        ("git", "-C top -c protocol.file.allow=always submodule add -q ../lib lib"), ("git", "-C top submodule status")],
        r"\w+ lib \(heads/main\)"),
    Job("git fetch over http", ("git", "bash", "python3", "sleep"), [
        *START, ("git", "clone -q --bare . served.git"), ("git", "-C served.git update-server-info"),
        ("bash", "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & server=$!\n"
                 "for i in 1 2 3 4 5 6 7 8 9; do git clone -q http://127.0.0.1:8123/served.git got 2>/dev/null && break; sleep 0.3; done\n"
                 "git -C got log --format=%s; kill $server")], "^one$", A),
    Job("git commit with a hook", ("git", "bash", "chmod"), [
        ("git", "init -q -b main ."), ("bash", "printf '#!/bin/sh\\necho the hook ran >&2\\ncat a.txt > seen\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
        ("git", "add a.txt"), ("git", f"{WHO} commit -m one"), ("bash", "echo $(<seen)")], "^one$", A, walled=True),
    Job("git config --global then read", ("git",), [
        ("git", "config --global user.name someone"), ("git", "config --list --show-origin"), ("git", "config --get user.name")], "^someone$"),
    Job("git with large files (lfs)", ("git",), [
        ("git", "init -q -b main ."), ("git", "lfs install --local"), ("git", "lfs track '*.bin'"), ("git", "add .gitattributes big.bin"),
        ("git", f"{WHO} commit -q -m big"), ("git", "lfs ls-files")], r"\* big\.bin", {"big.bin": "x" * 4096}, walled=True, needs=("git-lfs",)),
]

NODE = [
    Job("node -p", ("node",), [("node", "-p '6*7'")], "^42$"),
    node("fs, crypto, zlib, url", """
import fs from 'node:fs'; import crypto from 'node:crypto'; import zlib from 'node:zlib';
fs.writeFileSync('out.txt', 'hello'); const gz = zlib.gzipSync(fs.readFileSync('out.txt'));
console.log(zlib.gunzipSync(gz).toString(), crypto.createHash('sha256').update('a').digest('hex').slice(0, 8), new URL('http://a.b/c?d=1').searchParams.get('d'));
""", "^hello ca978112 1$"),
    node("http server and fetch", """
import http from 'node:http';
const server = http.createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1', async () => {
  console.log(await (await fetch(`http://127.0.0.1:${server.address().port}/x`)).text()); server.close(); process.exit(0); });
""", "^served /x$"),
    node("server on localhost by name", """
import http from 'node:http';
const server = http.createServer((q, r) => r.end('named')).listen(0, 'localhost', async () => {
  http.get(`http://localhost:${server.address().port}/`, r => r.on('data', d => { console.log(d.toString()); process.exit(0); })); });
""", "^named$"),
    node("worker, wasm, child process", """
import { Worker } from 'node:worker_threads'; import { execFileSync, spawnSync } from 'node:child_process';
const w = new Worker('require("worker_threads").parentPort.postMessage(new WebAssembly.Memory({initial: 8}).buffer.byteLength)', {eval: true});
w.on('message', m => console.log(m, execFileSync(process.execPath, ['-p', '1+1']).toString().trim(), spawnSync(process.execPath, ['-v']).status));
""", "^524288 2 0$"),
    Job("node --test", ("node",), [("node", "--test --test-reporter=tap job.test.mjs")], "(?m)^# pass 1$",
        {"job.test.mjs": "import test from 'node:test'; import assert from 'node:assert';\ntest('adds', () => assert.equal(1 + 1, 2));\n"}),
    node("os.userInfo, hostname, cpus", """
import os from 'node:os';
console.log(os.userInfo().username.length > 0, os.hostname().length > 0, os.cpus().length > 0, os.totalmem() > 1e6, os.availableParallelism() > 0, os.userInfo().homedir === os.homedir());
""", "^true true true true true true$"),
    node("fs.watch", """
import fs from 'node:fs';
const w = fs.watch('.', (kind, name) => { console.log('seen', name); process.exit(0); });
setTimeout(() => fs.writeFileSync('new.txt', 'x'), 50);
""", "^seen new.txt$"),
    Job("npm test", ("node", "npm"), [("npm", "test --silent")], "the test ran",
        {"package.json": '{"name":"a","version":"1.0.0","scripts":{"test":"node -e \\"console.log(\'the test ran\')\\""}}'}),
    Job("npm run (a shell word)", ("node", "npm"), [("npm", "run --silent words")], "^one\ntwo$",
        {"package.json": '{"name":"a","version":"1.0.0","scripts":{"words":"echo one && mkdir -p d && ls -d d >/dev/null && echo two"}}'}),
    Job("npm ci, a file: dependency", ("node", "npm"), [
        ("npm", "install --silent --no-audit --no-fund"), ("npm", "ci --silent --no-audit --no-fund"), ("node", "-p 'require(\"dep\")'")], "^the dependency$", {
        "package.json": '{"name":"a","version":"1.0.0","dependencies":{"dep":"file:dep"}}',
        "dep/package.json": '{"name":"dep","version":"1.0.0","main":"i.js"}', "dep/i.js": "module.exports = 'the dependency'\n"}),
    Job("npx a script of node_modules/.bin", ("node", "npm", "npx"), [("npx", "--no-install mine a b")], "^mine a b$", {
        "package.json": '{"name":"a","version":"1.0.0"}',
        "node_modules/.bin/mine": "#!/usr/bin/env node\nconsole.log('mine', ...process.argv.slice(2));\n"}, walled=True),
    Job("npm: a bin of a package in a script", ("node", "npm"), [("npm", "run --silent go")], "^mine x$", {
        "package.json": '{"name":"a","version":"1.0.0","scripts":{"go":"mine x"}}',
        "node_modules/.bin/mine": "#!/usr/bin/env node\nconsole.log('mine', ...process.argv.slice(2));\n"}, walled=True),
]

PYTHON = [
    python("json, re, pathlib, hashlib", "import json,re,pathlib,hashlib\npathlib.Path('o').write_text(json.dumps({'a':1}))\n"
           "print(re.sub('a','b',pathlib.Path('o').read_text()), hashlib.sha256(b'a').hexdigest()[:8])\n", r'^\{"b": 1\} ca978112$'),
    python("multiprocessing Pool", "from multiprocessing import Pool\ndef f(x): return x*x\n"
           "if __name__ == '__main__':\n    with Pool(2) as p: print(p.map(f, range(5)))\n", r"^\[0, 1, 4, 9, 16\]$"),
    python("ProcessPoolExecutor", "from concurrent.futures import ProcessPoolExecutor\ndef f(x): return x+1\n"
           "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as p: print(list(p.map(f, [1,2])))\n", r"^\[2, 3\]$"),
    python("multiprocessing Manager, shared_memory", "from multiprocessing import Manager, shared_memory, Lock\n"
           "if __name__ == '__main__':\n    Lock()\n    m = shared_memory.SharedMemory(create=True, size=64); m.buf[0] = 7; print(m.buf[0]); m.close(); m.unlink()\n"
           "    with Manager() as g:\n        d = g.dict(); d['a'] = 1; print(dict(d))\n", r"^7\n\{'a': 1\}$", unix_sockets=True),
    python("threads, queue", "import threading,queue\nq=queue.Queue()\nt=threading.Thread(target=lambda:q.put(5));t.start();t.join();print(q.get())\n", "^5$"),
    python("asyncio, subprocess, sockets", """
import asyncio, sys
async def main():
    async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()
    s = await asyncio.start_server(serve, '127.0.0.1', 0)
    r, w = await asyncio.open_connection('127.0.0.1', s.sockets[0].getsockname()[1])
    w.write(b'echo\\n'); print((await r.readline()).decode().strip()); w.close()
    p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(1)', stdout=-1); print((await p.communicate())[0].decode().strip())
asyncio.run(main())
""", "^echo\n1$"),
    python("http.server and urllib, localhost", """
import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'from localhost')
    def log_message(self, *a): pass
s = http.server.HTTPServer(('localhost', 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f'http://localhost:{s.server_port}/').read().decode())
""", "^from localhost$"),
    python("tempfile", "import tempfile,os\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x'); print(os.path.dirname(f.name))\n", "^/tmp$"),
    python("text and locale", "import locale\nlocale.setlocale(locale.LC_ALL,'')\nprint(len('é漢'), locale.getpreferredencoding(), sorted('bäa', key=locale.strxfrm)[0])\n", "^2 (?i:utf-8) a$"),
    python("sqlite3", "import sqlite3\nc=sqlite3.connect('d.db');c.execute('create table t(a)');c.execute('insert into t values(3)');c.commit();print(c.execute('select a from t').fetchone()[0])\n", "^3$"),
    python("ssl context", "import ssl\nc=ssl.create_default_context();print(c.verify_mode.name)\n", "^CERT_REQUIRED$"),
    python("subprocess of itself", "import subprocess,sys\nprint(subprocess.run([sys.executable,'-c','print(9)'],capture_output=True,text=True).stdout.strip())\n", "^9$"),
    python("ctypes", "import ctypes,ctypes.util\nl=ctypes.CDLL('libc.so.6');print(l.abs(-4));m=ctypes.CDLL('libm.so.6');m.sqrt.restype=ctypes.c_double;m.sqrt.argtypes=[ctypes.c_double];print(m.sqrt(9.0))\n", r"^4\n3\.0$"),
    python("getpass, pwd, expanduser", "import getpass,pwd,os\nprint(getpass.getuser()==pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser('~')==os.environ['HOME'], os.path.expanduser('~'+getpass.getuser())==os.environ['HOME'])\n", "^True True True$"),
    python("zoneinfo, time zone", "import zoneinfo,datetime\nprint(datetime.datetime(2024,7,1,12,tzinfo=zoneinfo.ZoneInfo('Asia/Tokyo')).utcoffset())\n", "^9:00:00$"),
    python("mimetypes, cpu_count, /proc", "import mimetypes,os\nprint(mimetypes.guess_type('a.html')[0], os.cpu_count()>0, 'processor' in open('/proc/cpuinfo').read(), 'MemTotal' in open('/proc/meminfo').read(), 'VmRSS' in open('/proc/self/status').read())\n", "^text/html True True True True$"),
    python("unix socket", """
import socket, threading
s = socket.socket(socket.AF_UNIX); s.bind('s.sock'); s.listen()
def serve(): c, _ = s.accept(); c.sendall(b'over unix'); c.close()
threading.Thread(target=serve, daemon=True).start()
c = socket.socket(socket.AF_UNIX); c.connect('s.sock'); print(c.recv(100).decode())
""", "^over unix$", unix_sockets=True),
    python("bind all, IPv6 loopback", """
import socket
a = socket.socket(); a.bind(('0.0.0.0', 0)); a.listen()
b = socket.socket(socket.AF_INET6); b.bind(('::1', 0)); b.listen()
c = socket.create_connection(('::1', b.getsockname()[1])); d = socket.create_connection(('127.0.0.1', a.getsockname()[1])); print('both')
""", "^both$"),
    python("pty, curses, terminal size", """
import pty, os, sys, shutil, curses
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execv(sys.executable, [sys.executable, '-c', 'import curses,sys; curses.setupterm(); print(sys.stdout.isatty(), curses.tigetnum("colors"))'])
text = b''
try:
    while piece := os.read(fd, 1000): text += piece
except OSError: pass
os.waitpid(pid, 0); print(text.decode().strip(), shutil.get_terminal_size().columns)
""", "^True 8 80$"),
    Job("python -m venv, run it", ("python3", "bash"), [("python3", "-m venv --without-pip env"), ("bash", "env/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'")], "^True$", walled=True),
    Job("pip install a local wheel into a venv", ("python3", "bash"), [
        ("python3", "-m venv env"), ("python3", "wheel.py"), ("bash", "env/bin/pip install -q --no-index --no-deps ./mine-1.0-py3-none-any.whl && env/bin/python -c 'import mine; print(mine.word)'")],
        "^installed$", {"wheel.py": """
import zipfile
with zipfile.ZipFile('mine-1.0-py3-none-any.whl', 'w') as z:
    z.writestr('mine.py', "word = 'installed'\\n")
    z.writestr('mine-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\n')
    z.writestr('mine-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('mine-1.0.dist-info/RECORD', 'mine.py,,\\nmine-1.0.dist-info/METADATA,,\\nmine-1.0.dist-info/WHEEL,,\\nmine-1.0.dist-info/RECORD,,\\n')
"""}, walled=True),
    Job("pip list, by name", ("pip",), [("pip", "--version"), ("pip", "list --format=freeze")], "(?m)^pip==", needs=("pip",)),
    Job("pytest", ("python3", "pytest"), [("pytest", "-q test_it.py")], "1 passed", {"test_it.py": "def test_it(tmp_path):\n    (tmp_path/'a').write_text('x')\n    assert (tmp_path/'a').read_text() == 'x'\n"}, needs=("pytest",)),
    Job("python -m pytest", ("python3",), [("python3", "-m pytest -q test_it.py")], "1 passed", {"test_it.py": "def test_it(capsys):\n    print(1)\n    assert capsys.readouterr().out == '1\\n'\n"}, needs=("pytest",)),
    Job("#!/usr/bin/env python3 script run directly", ("python3", "bash", "chmod"), [("bash", "chmod +x s.py && ./s.py")], "^direct$", {"s.py": "#!/usr/bin/env python3\nprint('direct')\n"}, walled=True),
]

CARGO = {"Cargo.toml": '[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2021"\n',
         "src/main.rs": 'fn main() { println!("it {}", 42); }\n#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\n'}
GO = {"go.mod": "module mine\n\ngo 1.20\n", "main.go": "package main\n\nfunc add(a, b int) int { return a + b }\n\nfunc main() { println(\"it\", add(40, 2)) }\n",
      "main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif add(1, 1) != 2 {\n\t\tt.Fail()\n\t}\n}\n"}
C = {"m.c": '#include <stdio.h>\n#include <math.h>\nint main(int c, char **v) { (void)v; printf("it %d\\n", 41 + c); return (int)floor(0.5); }\n'}
MAKE = {**C, "Makefile": "m: m.o\n\tgcc -o m m.o -lm\nm.o: m.c\n\tgcc -c m.c\nrun: m\n\t./m\nclean:\n\trm -f m m.o\n"}
CMAKE = {**C, "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(mine C)\nenable_testing()\nadd_executable(mine m.c)\ntarget_link_libraries(mine m)\nadd_test(NAME runs COMMAND mine)\n"}
JAVA = {"M.java": 'public class M { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("it 42")); t.start(); t.join(); } }\n'}

COMPILED = [
    Job("cargo build (offline)", ("cargo", "rustc"), [("cargo", "build -q --offline")], "", CARGO, is_heavy=True),
    Job("cargo check", ("cargo", "rustc"), [("cargo", "check -q --offline")], "", CARGO),
    Job("cargo run, cargo test", ("cargo", "rustc"), [("cargo", "test -q --offline"), ("cargo", "run -q --offline")], "^it 42$", CARGO, walled=True, is_heavy=True),
    Job("go build, go vet", ("go",), [("go", "build -o mine ."), ("go", "version mine")], "go1", GO, is_heavy=True),
    Job("go test, go run", ("go",), [("go", "test -vet=off ."), ("go", "run .")], "", GO, walled=True, is_heavy=True),
    Job("gcc -c, link, run", ("gcc", "bash"), [("gcc", "-O1 -c m.c"), ("gcc", "-o m m.o -lm"), ("bash", "./m")], "^it 42$", C, walled=True),
    Job("g++", ("g++",), [("g++", "-O0 -o m m.cc"), ("g++", "-print-file-name=libstdc++.so")], "libstdc", {"m.cc": '#include <string>\nint main() { std::string s("x"); return s.size() != 1; }\n'}),
    Job("clang", ("clang", "bash"), [("clang", "-o m m.c -lm"), ("bash", "./m")], "^it 42$", C, walled=True),
    Job("make (compiles)", ("make", "gcc"), [("make", "-s m"), ("make", "-s clean")], "", MAKE),
    Job("make run (runs what it built)", ("make", "gcc"), [("make", "-s run")], "^it 42$", MAKE, walled=True),
    Job("make, a shell recipe only", ("make",), [("make", "-s")], "^from make$", {"Makefile": "all:\n\t@echo from make\n"}),
    Job("make check, with the shell's tools", ("make",), [("make", "-s check")], "^passed$", {"Makefile": "check:\n\t@mkdir -p t && echo a > t/x && grep -q a t/x && echo passed\n"}),
    Job("cmake configure, build, ctest", ("cmake", "make", "gcc", "ctest"), [
        ("cmake", "-S . -B b"), ("cmake", "--build b"), ("ctest", "--test-dir b")], "100% tests passed", CMAKE, walled=True),
    Job("cmake with ninja", ("cmake", "ninja", "gcc"), [("cmake", "-G Ninja -S . -B b"), ("ninja", "-C b"), ("ninja", "-C b test")], "100% tests passed", CMAKE, walled=True),
    Job("javac and java", ("javac", "java"), [("javac", "M.java"), ("java", "M")], "^it 42$", JAVA),
    Job("java, http client and threads", ("java",), [("java", "H.java")], "^200 hello$", {"H.java": """
import com.sun.net.httpserver.*; import java.net.*; import java.net.http.*;
public class H { public static void main(String[] a) throws Exception {
  HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
  s.createContext("/", x -> { x.sendResponseHeaders(200, 5); x.getResponseBody().write("hello".getBytes()); x.close(); }); s.start();
  var r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + s.getAddress().getPort() + "/")).build(), HttpResponse.BodyHandlers.ofString());
  System.out.println(r.statusCode() + " " + r.body()); System.exit(0); } }
"""}),
    Job("mvn, offline", ("mvn", "java"), [("mvn", "-o -q -version"), ("mvn", "-o -B validate")], "BUILD SUCCESS", {"pom.xml": "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version><packaging>pom</packaging></project>"}),
    Job("perl", ("perl",), [("perl", "-MPOSIX -MData::Dumper -MFile::Temp -MJSON::PP -e 'print strftime(\"%Y\", gmtime(0)), encode_json([1]), \"\\n\"'")], r"^1970\[1\]$"),
    Job("ruby", ("ruby",), [("ruby", "-rjson -rset -rtempfile -e 'puts JSON.generate({a: Set[1].size}), Tempfile.new.path[0, 5]'")], '^{"a":1}\n/tmp/$'),
    Job("php", ("php",), [("php", "-r 'echo json_encode([\"a\" => 1]), strlen(\"é\"), date(\"Y\", 0), \"\\n\";'")], r'^\{"a":1\}', needs=("php",)),
    Job("tclsh", ("tclsh",), [("tclsh", "s.tcl")], "^42$", {"s.tcl": "puts [expr {6*7}]\n"}),
]
