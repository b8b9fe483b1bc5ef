# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day, third part: what people run less often, programs that want a terminal, a session or a daemon of their own,
# and those that are refused with words. See everyday.py.

from .everyday import Job, bash

LONG = "for i in {1..150}; do"

TERMINALS = [
    # Its ~/.expect.rc goes into 200 bytes, in which a lab's home has no room.
    Job("expect", ("expect", "bash"), [("bash", "HOME=/tmp expect s.exp")], "(?m)^got it$", {"s.exp": "\n".join([
        "set timeout 20", "spawn sh -c {echo ready; read x; echo said $x}", "expect ready", 'send "it\\r"', 'expect "said it"',
        'puts "\\ngot it"', "expect eof", "exit 0", ""])}),
    bash("script -c with an exit code", "script -qec 'exit 3' /dev/null; echo $?", "^3$", ("script",)),
    bash("tmux: a session, keys, what it shows", "tmux -f /dev/null new-session -d -s s -x 40 -y 10 'sh'; tmux send-keys -t s 'echo ty''ped' Enter; "
         f"{LONG} tmux capture-pane -p -t s | grep -q '^typed' && break; sleep 0.1; done; tmux capture-pane -p -t s | grep '^typed'; tmux kill-server",
         "^typed$", ("tmux",)),
    bash("setsid, nohup, disown", "setsid sh -c 'echo s > s' ; nohup sh -c 'echo n > n' > /dev/null 2>&1 & wait; sleep 60 & disown; cat s n", "^s\nn$", ("setsid", "nohup", "sh")),
    bash("less, more, a pager in a pipe", "seq 3 | less | tail -1; PAGER=cat git --version | head -c 3", "^3\ngit$", ("less", "git")),
]

BUILDS = [
    bash("make -j, a recipe that waits", "make -sj4 all && cat a b c", "^a\nb\nc$", ("make",), files={"Makefile": "all: a b c\na b c:\n\t@sleep 0.1; echo $@ > $@\n"}),
    bash("ccache", "ccache gcc -c -o m.o m.c && ccache gcc -c -o n.o m.c && cmp m.o n.o && echo same", "^same$", ("ccache", "gcc", "cmp"),
         files={"m.c": "int main(void) { return 0; }\n"}),
    bash("gcc with a sanitizer, run", "gcc -fsanitize=undefined -o m m.c && ./m", "^ran$", ("gcc",),
         files={"m.c": "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 0; }\n"}, walled=True),
    bash("ar, nm, objdump, strip, ldd", "gcc -c m.c && ar rcs l.a m.o && nm l.a | grep -c ' T main' && objdump -h m.o | grep -c text && strip m.o && echo done",
         "^1\n1\ndone$", ("gcc", "ar", "nm", "objdump", "strip"), files={"m.c": "int main(void) { return 0; }\n"}),
    bash("pkg-config", "pkg-config --version", r"^\d", ("pkg-config",)),
    bash("autoconf-like configure script", "chmod +x configure && ./configure && make -s", "^built$", ("make", "gcc", "expr", "uname", "rm", "sh"), walled=True, files={
        "configure": "#!/bin/sh\necho 'int main(void){return 0;}' > conftest.c\ngcc -o conftest conftest.c && ./conftest || exit 1\nprintf 'all:\\n\\t@echo built\\n' > Makefile\n"}),
]

PROCESSES = [
    bash("xargs -P, wait -n, timeout -k", "seq 4 | xargs -P 4 -I{} sh -c 'sleep 0.1; echo {}' | sort | tr -d '\\n'; echo; timeout -k 1 0.2 sleep 9; echo $?", "^1234\n124$", ("sh",)),
    bash("nice, ionice, renice of oneself", "nice -n 5 sh -c 'nice'; renice -n 6 $$ >/dev/null && echo reniced", r"^5\nreniced$", ("nice", "renice", "sh")),
    bash("taskset, ulimit, getconf", "taskset -c 0 nproc; ulimit -n >/dev/null; getconf PAGESIZE", r"^1\n4096$", ("taskset", "getconf")),
    bash("a server in the background, used by a later command", f"{LONG} curl -sf http://localhost:8765/f && break; sleep 0.2; done; kill $(cat pid)", "^served$",
         ("python3", "curl"), files={"f": "served\n"}),
    bash("ps aux, pstree by hand, /proc/self", "ps aux | grep -c [p]s; tr '\\0' ' ' < /proc/self/cmdline | cut -c1-2; ls /proc/self/fd | head -1", r"^\d+\ntr\n0$", ("ps",)),
    bash("lsof of oneself", "sleep 9 < f & lsof -p $! 2>/dev/null | grep -c '/f$'; kill $!", "^1$", ("lsof",), files={"f": "x\n"}),
    bash("watch a file change with inotifywait", "(sleep 0.5; echo x > new) & inotifywait -q -t 20 -e create . ", "CREATE new", ("inotifywait",)),
    bash("trap, signals, coproc", "trap 'echo caught' USR1; kill -USR1 $$; coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x", "^caught\nhi$"),
]
PROCESSES[3] = Job(PROCESSES[3].name, PROCESSES[3].allow, [
    ("bash", "python3 -m http.server 8765 --bind 127.0.0.1 > /dev/null 2>&1 & echo $! > pid"), PROCESSES[3].calls[0]],
    PROCESSES[3].says, PROCESSES[3].files)

LANGUAGES = [
    Job("lua", ("lua",), [("lua", "-e 'print(6*7)'")], "^42$"),
    Job("Rscript", ("Rscript",), [("Rscript", "-e 'cat(6*7)'")], "42"),
    bash("perl: fork, sockets, modules", "perl -MIO::Socket::INET -MStorable -MTime::HiRes=sleep -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\"); if (!fork) { $c = IO::Socket::INET->new(\"127.0.0.1:\".$s->sockport); print $c \"hi\\n\"; exit } print scalar readline($s->accept)'", "^hi$", ("perl",)),
    Job("ruby: webrick-less server, open3, yaml", ("ruby", "cat"), [("ruby", "s.rb")], "^sock\nsub\n---$", {"s.rb": "require 'socket'; require 'open3'; require 'yaml'\ns = TCPServer.new('127.0.0.1', 0); Thread.new { s.accept.puts 'sock' }\nputs TCPSocket.new('127.0.0.1', s.addr[1]).gets\nputs Open3.capture2('cat', stdin_data: 'sub')[0]\nputs({}.to_yaml.split(' ')[0])\n"}),
    Job("php: its own server", ("php", "bash", "curl", "sleep"), [("bash", f"php -S 127.0.0.1:8766 > /dev/null 2>&1 & {LONG} curl -sf http://127.0.0.1:8766/i.php && break; sleep 0.2; done; kill %1")], "^from php$", {"i.php": "<?php echo 'from php';\n"}),
    Job("node: cluster, http2, inspector off", ("node",), [("node", "c.mjs")], "^worker$", {"c.mjs": "import cluster from 'node:cluster'; if (cluster.isPrimary) { cluster.fork().on('message', m => { console.log(m); process.exit(0); }); } else process.send('worker');\n"}),
    Job("python: -m pip download refused in words, ensurepip, zipapp", ("python3",), [("python3", "-m zipapp app -o a.pyz"), ("python3", "a.pyz")], "^zipped$", {"app/__main__.py": "print('zipped')\n"}),
    Job("python: venv, activate, run a console script", ("python3", "bash"), [("python3", "-m venv env"), ("bash", ". env/bin/activate && python -c 'import sys; print(sys.prefix.endswith(\"env\"))' && pip --version")], "^True\npip ", walled=True),
    Job("python: curses, readline, dbm, lzma, uuid", ("python3",), [("python3", "-c 'import curses, readline, dbm, lzma, bz2, uuid, decimal, tkinter.constants; print(len(str(uuid.uuid4())))'")], "^36$"),
    Job("deno-less typescript: node --experimental-strip-types", ("node",), [("node", "-e 'console.log(process.version.length > 2)'")], "^true$"),
    Job("java: a jar of one's own", ("javac", "jar", "java"), [("javac", "M.java"), ("jar", "cfe m.jar M M.class"), ("java", "-jar m.jar")], "^from a jar$", {"M.java": 'public class M { public static void main(String[] a) { System.out.println("from a jar"); } }\n'}),
    Job("go: a module with packages, go fmt, go list", ("go", "gofmt"), [("go", "list ./..."), ("gofmt", "-l .")], "^$", {"go.mod": "module mine\n\ngo 1.20\n", "a/a.go": "package a\n", "main.go": "package main\n\nimport _ \"mine/a\"\n\nfunc main() {\n}\n"}, is_heavy=True),
    Job("cargo: new, a library, doc tests", ("cargo", "rustc", "bash"), [("cargo", "new -q --lib lib"), ("bash", "cd lib && cargo test -q --offline 2>&1 | tail -2")], "test result: ok", walled=True, is_heavy=True),
]

FILES = [
    bash("rsync, local", "mkdir a; echo x > a/f; rsync -a a/ b/ && cat b/f", "^x$", ("rsync",)),
    bash("tar of the work folder with attributes", "mkdir d; echo x > d/f; tar --sort=name -cf a.tar d && tar -df a.tar && tar --xattrs -cf b.tar d && echo same", "^same$", ("tar",)),
    bash("cp -a, install, ln -s, realpath, chmod, touch -d", "echo x > f; cp -a f g; install -m 700 f h; ln -s f l; realpath --relative-to=. l; stat -c %a h; touch -d 2001-01-01 f; date -r f +%Y", "^f\n700\n2001$", ("install", "realpath")),
    bash("split, comm, join, paste, tac, shuf, base64, md5sum", "seq 4 | split -l 2 - p; comm -12 paa paa | paste -sd,; tac paa | head -1; echo hi | base64; echo hi | md5sum | cut -c1-6; seq 9 | shuf | wc -l", "^1,2\n2\naGkK\n764efa\n9$", ("split", "comm", "paste", "tac", "base64", "md5sum", "shuf")),
    bash("xxd, hexdump, strings, bc, dc", "printf AB | od -An -tx1; echo '6*7' | bc; strings f | head -1", "^ 41 42\n42\nsometext$", ("bc", "strings"), files={"f": "\x01sometext\x02"}),
    bash("sponge-less in place: python, perl -i, sed -i", "sed -i s/a/b/ f; perl -i -pe s/b/c/ f; cat f", "^c$", ("perl",), files={"f": "a\n"}),
    bash("7z", "7z a -bd a.7z f > /dev/null && 7z l a.7z | grep -c ' f$'", "^1$", ("7z",), files={"f": "a\n"}),
    bash("xmllint", "xmllint --xpath '//b/text()' a.xml", "^x$", ("xmllint",), files={"a.xml": "<a><b>x</b></a>\n"}),
    bash("pandoc", "pandoc -t html a.md", "<h1", ("pandoc",), files={"a.md": "# hi\n"}),
    bash("pdftotext", "pdftotext -v 2>&1 | head -1", "version", ("pdftotext",)),
    bash("dot", "echo 'digraph {a -> b}' | dot -Tsvg | grep -c '<svg'", "^1$", ("dot",)),
]

NETWORK = [
    bash("nc: both ends", f"nc -l -p 8767 > got & {LONG} echo hi | nc -q 0 127.0.0.1 8767 2>/dev/null && break; sleep 0.2; done; wait; cat got", "^hi$", ("nc",)),
    bash("curl upload to a server of one's own", f"python3 s.py & {LONG} curl -sf -X POST --data @f http://127.0.0.1:8768/ && break; sleep 0.2; done; kill %1", "^5 bytes$", ("python3", "curl"), files={
        "f": "12345", "s.py": "import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n    def do_POST(self):\n        n = int(self.headers['content-length']); self.rfile.read(n); self.send_response(200); self.end_headers(); self.wfile.write(b'%d bytes' % n)\n    def log_message(self, *a): pass\nhttp.server.HTTPServer(('127.0.0.1', 8768), H).serve_forever()\n"}),
    bash("ss, ip addr, hostname, getent", "getent hosts localhost | grep -c localhost; hostname >/dev/null && echo named", r"^[12]\nnamed$", ("getent", "hostname")),
    bash("openssl s_server and s_client", "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out c -subj /CN=localhost -days 2 2>/dev/null; "
         f"openssl s_server -quiet -accept 8769 -cert c -key k -www > /dev/null 2>&1 & {LONG} curl -skf https://localhost:8769/ > page && break; sleep 0.2; done; kill %1; grep -c HTML page", r"^\d+$", ("openssl", "curl")),
    bash("postgres-less: sqlite over a pipe", "echo 'select 6*7;' | sqlite3", "^42$", ("sqlite3",)),
]

MORE = [*TERMINALS, *BUILDS, *PROCESSES, *LANGUAGES, *FILES, *NETWORK]
