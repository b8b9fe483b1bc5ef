# SPDX-License-Identifier: Apache-2.0
#
# Jobs of every day, second part: shells and their tools, archives, keys, media, servers. See everyday.py.

from .everyday import Job, bash

SHELLS = [
    bash("bash: pipes, loops, arrays, here text", "a=(x y z)\nfor i in ${a[@]}; do echo $i; done | sort -r | head -1\ncat <<< here\n", "^z\nhere$"),
    bash("characters: wc -m, sed, sort", "printf 'é漢' | wc -m; echo é漢 | sed 's/./X/g'; printf 'b\\nä\\na\\n' | sort | head -1", "^2\nXX\na$"),
    bash("find, xargs -P, grep -r", "mkdir d; for i in 1 2 3; do echo w$i > d/$i; done; find d -type f -print0 | xargs -0 -P 2 grep -l w | wc -l; grep -rc w d | sort | head -1", "^3\nd/1:1$"),
    bash("sort a big file", "seq 200000 -1 1 > n; sort -n n | head -1; sort -n -S 1M n | tail -1", "^1\n200000$"),
    bash("tail -f with timeout, background writer", "(for i in 1 2 3; do echo l$i >> log; sleep 0.05; done) & sleep 0.02; timeout 1 tail -f -n +1 log | head -3; wait", "^l1\nl2\nl3$"),
    bash("background server and curl", "python3 -m http.server 8124 --bind 127.0.0.1 >/dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9; do curl -sf http://localhost:8124/hello.txt && break; sleep 0.3; done; kill %1", "^hi there$",
         ("python3", "curl"), files={"hello.txt": "hi there\n"}),
    bash("id, whoami, uname, nproc, df, du", "test $(id -un) = $(whoami) && id -g >/dev/null && uname -r >/dev/null && test $(nproc) -ge 1 && df . >/dev/null && df >/dev/null && du -sh . >/dev/null && echo known", "^known$"),
    bash("date with TZ", "TZ=Asia/Tokyo date -d @0 +%H%Z; TZ=America/New_York date -d @0 +%H%Z", "^09JST\n19EST$"),
    bash("mkfifo, flock, mktemp, /dev/stderr", "mkfifo p; (echo through > p) & cat p; t=$(mktemp); flock $t echo locked; echo e > /dev/stderr; echo o > /dev/stdout", "^through\nlocked\no$"),
    bash("dd from /dev/urandom, /dev/random, /dev/zero, /dev/full", "for d in urandom random zero; do dd if=/dev/$d bs=8 count=1 2>/dev/null | wc -c; done; echo x > /dev/null; (echo x > /dev/full) 2>/dev/null || echo full", "^8\n8\n8\nfull$"),
    bash("/dev/shm", "echo s > /dev/shm/mine; cat /dev/shm/mine; rm /dev/shm/mine; ls /dev/shm | wc -l", "^s\n0$"),
    bash("ps, pgrep, kill a child", "sleep 30 & p=$!; ps -o comm= -p $p; pgrep -x sleep >/dev/null && echo found; kill $p; wait $p; echo $?", "^sleep\nfound\n143$", ("ps", "pgrep")),
    bash("top, free, uptime", "top -b -n 1 | grep -c 'PID' ; free -m | grep -c Mem; uptime | grep -c load", "^1\n1\n1$", ("top", "free", "uptime")),
    bash("a script of one's own: bash s.sh", "bash s.sh a", "^script a$", files={"s.sh": "#!/bin/bash\necho script $1\n"}),
    bash("a script of one's own: ./s.sh", "chmod +x s.sh; ./s.sh b; cp s.sh /tmp/t.sh; /tmp/t.sh c", "^script b\nscript c$", files={"s.sh": "#!/bin/sh\necho script $1\n"}, walled=True),
    bash("ed: batch editing", "printf 's/a/b/\\nw\\nq\\n' | ed -s f; cat f", "^b$", ("ed",), files={"f": "a\n"}),
    Job("vim -es", ("vim",), [("vim", "-es -u NONE -c '%s/a/b/' -c wq f"), ("vim", "-es -u NONE -c 'syntax on' -c '%s/b/c/g' -c 'w! g' -c q f")], "", {"f": "a\n"}),
    Job("vi -es by another name", ("vi",), [("vi", "-es -u NONE -c '%s/a/b/' -c wq f")], "", {"f": "a\n"}),
    Job("man", ("man",), [("man", "-P cat ls")], "list directory contents", needs=("man-pages-of-ls",)),
    bash("perl and awk over a file", "awk '{s += $1} END {print s}' n; perl -ne 'print if /2/' n", "^6\n2$", ("perl",), files={"n": "1\n2\n3\n"}),
    bash("which, command -v", "command -v grep >/dev/null && which sed >/dev/null && echo found", "^found$", ("which",)),
    bash("script: a terminal of one's own", "script -qec 'test -t 1 && echo a terminal' /dev/null", "a terminal", ("script",)),
]

TOOLS = [
    Job("rg", ("rg",), [("rg", "-n needle")], r"b\.txt:1:a needle", {"b.txt": "a needle\n"}),
    Job("fd", ("fdfind",), [("fdfind", "-e txt")], r"b\.txt", {"b.txt": "a needle\n"}),
    Job("jq", ("jq",), [("jq", "-r '.a[1]' d.json")], "^two$", {"d.json": '{"a":["one","two"]}'}),
    bash("sed -i, awk", "sed -i 's/a/b/' f; awk '{print $1}' f", "^b$", files={"f": "a x\n"}),
    Job("tar and gzip", ("tar", "gzip"), [("tar", "czf a.tgz f"), ("tar", "tzf a.tgz")], "^f$", {"f": "a\n"}),
    Job("tar, granted alone", ("tar",), [("tar", "czf a.tgz f"), ("tar", "cJf a.txz f"), ("tar", "tJf a.txz")], "^f$", {"f": "a\n"}),
    Job("tar with xz, zstd, bzip2", ("tar", "xz", "zstd", "bzip2"), [("tar", "cJf a.txz f"), ("tar", "--zstd -cf a.tzst f"), ("tar", "cjf a.tbz f"), ("tar", "xjf a.tbz"), ("tar", "--zstd -tf a.tzst")], "^f$", {"f": "a\n"}),
    Job("zip, unzip", ("zip", "unzip"), [("zip", "-q a.zip f"), ("unzip", "-p a.zip")], "^a$", {"f": "a\n"}),
    Job("sqlite3", ("sqlite3",), [("sqlite3", "d.db 'create table t(a); insert into t values(7); select a from t;'")], "^7$"),
    Job("ssh-keygen", ("ssh-keygen",), [("ssh-keygen", "-q -t ed25519 -N '' -f key"), ("ssh-keygen", "-lf key.pub")], "ED25519"),
    bash("gpg: make a key, sign", "gpg -q --batch --passphrase '' --quick-gen-key a@b.c default default never && gpg -q --batch -s -o f.gpg f && gpg --batch --verify f.gpg 2>&1 | grep -o 'Good signature'", "^Good signature$", ("gpg",), files={"f": "a\n"}),
    Job("openssl dgst, req", ("openssl",), [("openssl", "req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -subj /CN=localhost -days 2"), ("openssl", "verify -CAfile c.pem c.pem"), ("openssl", "dgst -sha256 f")], "SHA", {"f": "a\n"}),
    bash("patch, diff", "diff -u a b > d; patch -s a d; cmp a b && echo same", "^same$", ("diff", "patch", "cmp"), files={"a": "1\n2\n", "b": "1\n3\n"}),
    bash("file", "printf 'GIF89a\\1\\0\\1\\0\\0\\0\\0;' > f.gif; file -b --mime-type f.gif; file -b s.py", "^image/gif\nPython script", ("file",), files={"s.py": "#!/usr/bin/env python3\nimport sys\n"}),
    Job("tree", ("tree",), [("tree", "")], r"b\.txt", {"b.txt": "a\n"}),
    Job("uv", ("uv", "python3"), [("uv", "venv --offline -q env"), ("uv", "--version")], "^uv ", needs=("uv",)),
    Job("pnpm", ("pnpm", "node"), [("pnpm", "--offline run --silent go")], "^by pnpm$", {"package.json": '{"name":"a","version":"1.0.0","scripts":{"go":"node -e \\"console.log(\'by pnpm\')\\""}}'}),
    Job("tsc", ("tsc", "node"), [("tsc", "--strict a.ts"), ("node", "a.js")], "^typed 1$", {"a.ts": "const n: number = 1;\nconsole.log('typed', n);\n"}),
    bash("redis-server and redis-cli", "redis-server --port 6399 --save '' --daemonize no >/dev/null & for i in 1 2 3 4 5 6 7 8 9; do redis-cli -p 6399 set a b 2>/dev/null && break; sleep 0.2; done; redis-cli -p 6399 get a; redis-cli -p 6399 shutdown nosave", "^OK\nb$", ("redis-server", "redis-cli")),
    bash("ffmpeg", "ffmpeg -v error -f lavfi -i testsrc=d=0.2:s=64x48:r=5 -y v.mp4 && ffprobe -v error -show_entries stream=width -of csv=p=0 v.mp4", "^64", ("ffmpeg", "ffprobe")),
    bash("ImageMagick", "convert -size 20x10 xc:red a.png && identify -format '%wx%h' a.png && convert a.png -resize 50% b.jpg && identify -format ' %m' b.jpg", "^20x10 ?JPEG$", ("convert", "identify")),
    Job("chromium: screenshot of a local page", ("chromium",), [("chromium", "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --user-data-dir=/tmp/chrome --screenshot=page.png --window-size=200,100 page.html"),
                                                                 ("chromium", "--version")], "Chromium", {"page.html": "<h1>hello</h1>"}, is_heavy=True),
]
