/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/recipe_table.h"

#include "base/cleanup.h"

#include <stddef.h>

/* clang-format off */
const char *const recipe_shell[] = {
    "sh", "dash", "bash", "env", "awk", "basename", "cat", "chmod", "cksum", "cmp", "comm", "cp", "cut", "date", "dd", "df",
    "diff", "dirname", "du", "echo", "egrep", "expand", "expr", "false", "fgrep", "find", "fmt", "fold", "getconf", "getopt",
    "grep", "head", "hostname", "id", "install", "join", "ln", "locale", "ls", "mkdir", "mkfifo", "mktemp", "mv", "nl", "nproc",
    "od", "paste", "printenv", "printf", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq", "sha256sum", "md5sum",
    "shuf", "sleep", "sort", "split", "stat", "sum", "sync", "tac", "tail", "tee", "test", "[", "timeout", "touch", "tput", "tr",
    "true", "tsort", "tty", "uname", "unexpand", "uniq", "wc", "which", "whoami", "xargs", "yes", NULL
};

const char *const recipe_public[] = {
    /* languages, characters and times */
    "/usr/lib/locale", "/usr/share/locale", "/usr/share/i18n", "/usr/lib/*/gconv", "/usr/share/zoneinfo", "/etc/localtime",
    "/etc/timezone", "/etc/default/locale", "/etc/locale.alias",
    /* libraries, their plugins and their cache */
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/usr/lib/*-linux-gnu*", "/lib/*-linux-gnu*",
    "/usr/lib64", "/lib64", "/usr/local/lib/*.so*",
    /* cryptography's settings; never /etc/ssl, which encloses private keys */
    "/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies", "/etc/gnutls/config",
    /* terminals, fonts, kinds of files, services */
    "/etc/terminfo", "/lib/terminfo", "/usr/lib/terminfo", "/usr/share/terminfo", "/etc/inputrc", "/etc/fonts", "/usr/share/fonts",
    "/usr/local/share/fonts", "/var/cache/fontconfig", "/etc/magic", "/etc/magic.mime", "/usr/lib/file", "/etc/mime.types",
    "/etc/mailcap", "/etc/services", "/etc/protocols", "/etc/papersize", "/etc/environment.d", "/etc/profile", "/etc/profile.d",
    "/etc/bash.bashrc",
    /* which system this is */
    "/etc/os-release", "/usr/lib/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/issue",
    /* the data of the distribution's programs */
    "/usr/share", "/usr/local/share", NULL
};

#define JVM_READ "/etc/java*", "/usr/share/java", "/etc/ssl/certs/java", "/etc/ca-certificates", "{prefix}"
#define C_RUN  "/usr/lib/gcc/*/*", "/usr/libexec/gcc/*/*", "/usr/lib/gcc-cross/*/*", "/usr/lib/llvm-*/bin", "/usr/lib/llvm-*/lib", "/usr/lib/bfd-plugins"
#define C_READ "/usr/include", "/usr/local/include", "/usr/lib/gcc", "/usr/lib/llvm-*", "/usr/lib/*.o", "/usr/local/lib", "/usr/lib/bfd-plugins", "/usr/lib/pkgconfig"
/* For families that look for libraries, headers and modules of others by themselves. */
#define LIBRARIES "/usr/lib", "/usr/libexec", "/usr/include", "/usr/local/lib", "/usr/local/include"
/* To look for leaks a sanitizer halts its own process by ptrace; without, every program that carries it would fail at its end. */
#define NO_LEAKS "ASAN_OPTIONS=detect_leaks=0", "LSAN_OPTIONS=detect_leaks=0"
#define BINUTILS "as", "ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "ar", "ranlib", "nm", "strip", "objcopy", "objdump", "readelf", "size", "strings"

const struct recipe recipes[] = {
    { "git", { "git", "git-lfs", "gitk", "tig", "gh" },
      { "@shell", "git", "git-lfs", "gettext", "envsubst", "ngettext", "gettext.sh", "perl", "ssh", "gpg", "gpg2", "less", "gzip", "curl" },
      { "/usr/lib/git-core", "/usr/libexec/git-core" }, { "/usr/share/git-core" }, { { { "--exec-path" }, ANSWER_RUN_TREE } },
      { "GIT_TERMINAL_PROMPT=0" },
      "~/.gitconfig, credential helpers and stored credentials, ~/.ssh, sections of /etc/gitconfig that hold addresses, helpers or keys" },
    { "node", { "node", "nodejs", "deno", "bun" }, { "sh", "node", "nodejs" }, { 0 },
      { "/usr/lib/node_modules", "/usr/local/lib/node_modules", "/usr/lib/nodejs", "/usr/share/nodejs", "/usr/share/node_modules", "{prefix}/lib/node_modules", "{prefix}/include" },
      { { { 0 }, ANSWER_NONE } }, { "NO_UPDATE_NOTIFIER=1" }, "~/.npmrc, ~/.npm", SOCKETS_WHERE_SEALED, true },
    { "npm", { "npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "corepack" }, { "@shell", "node", "nodejs", "npm", "npx" }, { 0 },
      { "/usr/lib/node_modules", "/usr/local/lib/node_modules", "/usr/share/nodejs", "{prefix}/lib/node_modules" },
      { { { 0 }, ANSWER_NONE } }, { "NPM_CONFIG_UPDATE_NOTIFIER=false", "NPM_CONFIG_CACHE={home}/.npm", "NO_UPDATE_NOTIFIER=1" },
      "~/.npmrc with its tokens, ~/.npm, ~/.config/pnpm", SOCKETS_WHERE_SEALED, true },
    { "python", { "python*", "pip*", "pypy*", "pytest", "ipython*", "tox", "nox", "ruff", "black", "mypy", "poetry", "pdm", "hatch", "virtualenv" },
      { "sh", "ldconfig", "uname" }, { 0 }, { "/usr/lib/python3", "/usr/share/python3", "/usr/share/python-wheels", "/etc/python3*", "/usr/include/python3*" },
      { { { 0 }, ANSWER_NONE } },
      { "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_CACHE_DIR={home}/.cache/pip" }, "~/.pypirc, ~/.config/pip, ~/.netrc, packages of the user's own site", SOCKETS_WHERE_SEALED },
    { "python's projects", { "poetry", "pdm", "hatch", "rye", "pixi", "pipx", "pipenv", "tox", "nox", "pre-commit", "cookiecutter", "copier", "pip-compile", "invoke", "dvc" },
      { "@shell", "git", "python3", "python", "virtualenv", "uv" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { "VIRTUALENV_OVERRIDE_APP_DATA={home}/.cache/virtualenv" }, "~/.config/pypoetry, ~/.pypirc" },
    { "ansible", { "ansible*" }, { "@shell", "python3", "ssh", "scp", "sftp", "git", "mkdir" }, { "{bin}/ansible-*" }, { "/etc/ansible/ansible.cfg", "/usr/share/ansible" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.ansible, vault passwords", SOCKETS_WHERE_SEALED },
    { "jupyter", { "jupyter*" }, { "sh", "python3" }, { "{bin}/jupyter-*" }, { "{prefix}/share/jupyter", "{prefix}/etc/jupyter", "/usr/share/jupyter", "/usr/local/share/jupyter", "/etc/jupyter" },
      { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.jupyter, ~/.local/share/jupyter, ~/.ipython", SOCKETS_WHERE_SEALED, true },
    { "uv", { "uv", "uvx" }, { "sh", "python3", "python", "uv", "git" }, { 0 }, { "/etc/uv" }, { { { 0 }, ANSWER_NONE } },
      { "UV_CACHE_DIR={home}/.cache/uv", "UV_PYTHON_DOWNLOADS=manual" }, "~/.config/uv, ~/.cache/uv" },
    { "rust", { "cargo", "rustc", "rustdoc", "rustfmt", "cargo-*", "clippy-driver", "rust-gdb" },
      { "sh", "cc", "gcc", "rustc", "rustdoc", "rustfmt", "cargo", "cargo-clippy", "cargo-fmt", "clippy-driver", "git", BINUTILS },
      { "{prefix}/bin", "{prefix}/lib", "{prefix}/libexec" }, { "{prefix}/share", "{prefix}/etc" }, { { { 0 }, ANSWER_NONE } },
      { "CARGO_HOME={home}/.cargo", NO_LEAKS }, "~/.cargo/credentials.toml, ~/.cargo/config.toml, ~/.cargo/registry", SOCKETS_WHERE_SEALED },
    { "go", { "go", "gofmt" }, { "sh", "gcc", "g++", "git", "gofmt", BINUTILS }, { 0 }, { "/usr/share/go*" },
      { { { "env", "GOROOT" }, ANSWER_RUN_TREE } }, { "GOCACHE={home}/.cache/go-build", "GOPATH={home}/go", "GOTELEMETRY=off" },
      "~/go/pkg/mod, ~/.config/go/env, ~/.netrc", SOCKETS_WHERE_SEALED, true },
    { "gcc", { "cc", "c++", "gcc", "g++", "cpp", "gcc-*", "g++-*", "c89", "c99", "gfortran*", "gdc*", "gnat*", "*-linux-gnu-gcc*", "*-linux-gnu-g++*" },
      { "sh", "cc", "c++", "gcc", "g++", "cpp", "gcov", "gcc-ar", "gcc-nm", "gcc-ranlib", "ccache", "gnatbind", "gnatlink", "gnatmake", "gnatls", BINUTILS }, { C_RUN }, { C_READ },
      { { { "-print-prog-name=cc1" }, ANSWER_PROGRAM }, { { "-print-prog-name=cc1plus" }, ANSWER_PROGRAM },
        { { "-print-prog-name=as" }, ANSWER_PROGRAM }, { { "-print-prog-name=ld" }, ANSWER_PROGRAM },
        { { "-print-prog-name=collect2" }, ANSWER_PROGRAM }, { { "-print-prog-name=lto-wrapper" }, ANSWER_PROGRAM },
        { { "-print-file-name=crt1.o" }, ANSWER_READ_PARENT }, { { "-print-file-name=include" }, ANSWER_READ_PARENT },
        { { "-print-libgcc-file-name" }, ANSWER_READ_PARENT } },
      { "CCACHE_DIR={home}/.cache/ccache", NO_LEAKS }, NULL },
    { "clang", { "clang", "clang++", "clang-[0-9]*", "clang++-*", "clang-tidy*", "clang-format*", "clangd*", "lld*", "ld.lld*" },
      { "sh", BINUTILS }, { C_RUN }, { C_READ },
      { { { "-print-prog-name=ld" }, ANSWER_PROGRAM }, { { "-print-resource-dir" }, ANSWER_READ_TREE }, { { "-print-file-name=crt1.o" }, ANSWER_READ_PARENT } },
      { NO_LEAKS }, NULL },
    { "binutils", { BINUTILS }, { 0 }, { "/usr/lib/bfd-plugins" }, { "/usr/lib/bfd-plugins", "/usr/lib/*.o" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "make", { "make", "gmake", "ninja", "ninja-build", "samu" }, { "@shell", "make", "ar", "ranlib" }, { 0 }, { "/usr/include" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "cmake", { "cmake", "ctest", "cpack", "ccmake" },
      { "@shell", "cmake", "ctest", "make", "ninja", "pkg-config", "cc", "c++", "gcc", "g++", BINUTILS }, { 0 },
      { "/usr/include", "/usr/local/include", "/usr/lib/cmake", "/usr/lib/pkgconfig", "/usr/local/lib/cmake" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "meson", { "meson" }, { "@shell", "python3", "ninja", "cmake", "pkg-config", "cc", "c++", "gcc", "g++", BINUTILS }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "autotools", { "autoconf", "automake", "autoreconf", "aclocal", "libtoolize", "m4", "pkg-config", "pkgconf", "bison", "flex", "yacc" },
      { "@shell", "perl", "m4", "autoconf", "autom4te", "automake", "aclocal", "autoheader" }, { 0 }, { "/usr/lib/pkgconfig" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "java", { "java", "javac", "jar", "javadoc", "jshell", "javap", "jps", "jcmd", "keytool", "kotlin*", "scala*", "groovy*", "clojure", "clj", "lein", "jruby", "jython", "plantuml", "bsh" }, { "@shell", "java", "rlwrap" },
      { "{prefix}/bin", "{prefix}/lib", "{prefix}/jre" }, { JVM_READ }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.m2, ~/.gradle, ~/.java", SOCKETS_WHERE_SEALED },
    { "maven", { "mvn", "gradle", "ant", "sbt", "mvnDebug" }, { "@shell", "java", "javac" }, { 0 },
      { "/usr/share/maven*", "/etc/maven", "/etc/m2.conf", "/etc/ant", "{prefix}" }, { { { 0 }, ANSWER_NONE } },
      { "MAVEN_OPTS=-Duser.home={home}", "GRADLE_USER_HOME={home}/.gradle" },
      "~/.m2/settings.xml with its passwords, ~/.m2/repository, ~/.gradle" },
    { "perl", { "perl", "perl5*", "prove", "cpan", "cpanm", "perldoc" }, { "sh", "perl" }, { 0 }, { "/etc/perl", "/usr/share/perl*", "/usr/lib/*/perl*" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL, SOCKETS_WHERE_SEALED },
    { "ruby", { "ruby*", "gem*", "bundle*", "rake*", "irb*", "rspec*" }, { "sh", "ruby", "uname" }, { 0 },
      { "/usr/lib/ruby", "/var/lib/gems", "/usr/lib/*/ruby", "/usr/share/rubygems-integration", "{prefix}/lib/ruby" },
      { { { "-e", "print $:.join(0.chr)" }, ANSWER_READ_TREE } }, { 0 }, "~/.gem/credentials, ~/.bundle", SOCKETS_WHERE_SEALED, true },
    { "php", { "php*", "composer*", "phpunit*" }, { "sh", "php" }, { 0 }, { "/etc/php", "/usr/lib/php", "/usr/share/php*", "/var/lib/php/modules" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.composer/auth.json" },
    /* It reads whom it trusts before it knows whether it will ask anybody. */
    { "composer", { "composer*" }, { "@shell", "git", "unzip", "7z" }, { 0 }, { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt" }, { { { 0 }, ANSWER_NONE } },
      { "COMPOSER_HOME={home}/.composer", "COMPOSER_ALLOW_SUPERUSER=1" }, "~/.composer/auth.json" },
    { "lua, tcl and R", { "lua*", "tclsh*", "wish*", "expect", "R", "Rscript" }, { "@shell", "stty" }, { "/usr/lib/R" },
      { "/usr/share/tcltk", "/usr/lib/tcltk", "/usr/lib/*/tcl*", "/usr/lib/tcl*", "/usr/lib/R", "/etc/R", "/usr/local/lib/lua", "/usr/local/lib/R" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    /* The names of its own settings go into 200 bytes of its stack, and a session's home is long. */
    { "expect", { "expect", "autoexpect", "unbuffer", "passmass" }, { "@shell", "expect", "stty" }, { 0 }, { "/usr/share/tcltk", "/usr/lib/tcltk" }, { { { 0 }, ANSWER_NONE } }, { "DOTDIR={tmp}" }, "~/.expect.rc" },
    { "ocaml", { "ocaml*", "dune", "opam", "ghc*", "runghc*", "sbcl*", "erl*", "escript", "rebar3", "iex", "elixir*", "mix", "nim*", "zig", "dmd", "ldc2", "fpc", "swift*", "crystal", "julia", "valac*", "fasm", "nasm", "yasm" },
      { "@shell", "ocamlrun", "gcc", "cc", "erl", "erlc", BINUTILS, "x86_64-linux-gnu-as", "x86_64-linux-gnu-ld", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-as", "aarch64-linux-gnu-ld", "aarch64-linux-gnu-gcc", "ppcx64", "ppca64", "fpcres", "fpcmkcfg", "pkg-config", "elixir", "iex", "ghc", "ghc-pkg", "ghc-iserv", "git" },
      { "/usr/lib/*/fpc/*", "/usr/lib/erlang", "/usr/lib/ghc*", "{prefix}/bin" }, { "/etc/erlang", "/etc/fpc*.cfg", "/var/lib/ghc", LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.opam, ~/.hex, ~/.cabal" },
    { "schemes", { "racket", "raco", "drracket", "guile*", "guild", "chicken*", "csi", "gsi", "gsc", "chez*", "gforth*", "swipl", "gprolog" }, { "@shell", "racket", "guile", "gcc", "cc", BINUTILS },
      { "/usr/lib/racket", "/usr/lib/*/guile", "/usr/lib/*/gforth" }, { "/etc/racket", LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "tests of shells", { "bats*", "shunit2", "shellspec" }, { "@shell", "bats", "parallel", "flock", "tput" }, { "/usr/libexec/bats-core", "/usr/lib/bats-core", "/usr/lib/bats*" }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "mathematics", { "octave*", "maxima", "gnuplot*", "gp", "sage", "scilab*" }, { "@shell", "octave-cli", "gnuplot", "gnuplot-nox", "gnuplot-qt", "rmaxima" },
      { "/usr/lib/*/octave", "/usr/libexec/octave", "/usr/lib/maxima", "/usr/libexec/gnuplot", "/usr/lib/*/gnuplot" }, { "/etc/octave.conf", "/usr/lib/*/octave", LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "mono", { "mono*", "mcs", "csc", "msbuild", "nuget", "dotnet" }, { "@shell", "mono", "mono-sgen" }, { "/usr/lib/mono", "/usr/lib/dotnet", "/usr/share/dotnet" }, { "/etc/mono", LIBRARIES }, { { { 0 }, ANSWER_NONE } },
      { "DOTNET_CLI_TELEMETRY_OPTOUT=1", "DOTNET_NOLOGO=1" }, "~/.nuget, ~/.config/NuGet" },
    { "packages", { "dpkg*", "rpm*", "fakeroot*" }, { "@shell", "dpkg", "dpkg-query", "dpkg-deb", "dpkg-split", "tar", "gzip", "xz", "zstd", "perl", "faked", "faked-sysv", "faked-tcp" },
      { "/usr/lib/rpm" }, { "/var/lib/dpkg", "/etc/dpkg", "/usr/lib/rpm", "/etc/rpm", "/var/lib/rpm" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "both ends", { "socat*", "nc", "nc.*", "ncat", "netcat", "websocat" }, { "sh" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL, SOCKETS_WHERE_SEALED },
    { "tar", { "tar", "bsdtar", "zip", "7z", "7za" }, { "sh", "gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress", "gunzip", "bunzip2", "unxz", "unzstd", "zcat" }, { "/usr/lib/7zip", "/usr/lib/p7zip" }, { 0 }, { { { 0 }, ANSWER_NONE } },
      { "TAR_OPTIONS=--no-same-owner" }, NULL },
    { "man", { "man", "apropos", "whatis", "groff", "nroff", "troff" },
      { "@shell", "groff", "nroff", "troff", "grotty", "preconv", "tbl", "eqn", "neqn", "pic", "refer", "col", "less", "zcat", "gzip", "xz", "zsoelim", "manpath", "lexgrog" },
      { "/usr/lib/man-db", "/usr/libexec/man-db" }, { "/etc/manpath.config", "/etc/man_db.conf", "/etc/groff", "/var/cache/man", "/usr/lib/groff" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "editors", { "vim*", "vi", "ex", "view", "nvim", "emacs*", "nano", "ed", "less", "more" }, { "sh" }, { 0 }, { "/etc/vim", "/usr/lib/nvim", "/etc/nanorc", "/etc/emacs" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.vimrc, ~/.viminfo" },
    { "gnupg", { "gpg", "gpg2", "gpgv", "gpgsm", "gpg-agent", "gpgconf" },
      { "gpg-agent", "gpgconf", "gpg-connect-agent", "gpgsm", "dirmngr", "keyboxd", "scdaemon", "pinentry", "pinentry-curses", "pinentry-tty" },
      { "/usr/lib/gnupg", "/usr/lib/gnupg2", "/usr/libexec" }, { "/etc/gnupg" }, { { { 0 }, ANSWER_NONE } }, { "GNUPGHOME={tmp}/.gnupg" }, "~/.gnupg: keys are the session's own", SOCKETS_WITH_A_ROOT },
    { "ssh's agent", { "ssh-agent", "ssh-add" }, { "sh" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, "the person's own agent", SOCKETS_WITH_A_ROOT },
    { "ssh", { "ssh", "scp", "sftp", "ssh-keygen", "ssh-add", "ssh-agent", "ssh-keyscan", "rsync" }, { "ssh", "sh" }, { "/usr/lib/openssh" }, { "/etc/ssh/ssh_config", "/etc/ssh/ssh_config.d" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.ssh, host keys, the agent's socket" },
    { "browsers", { "chromium*", "google-chrome*", "chrome", "firefox*", "chromedriver" },
      { "@shell", "findmnt", "xdg-settings", "xdg-mime", "lsb_release", "python3" },
      { "/usr/lib/chromium*", "/opt/google/chrome", "/usr/lib/firefox*" }, { "/etc/chromium*", "/etc/firefox*", "/etc/X11", "/etc/drirc", "/etc/vulkan" }, { { { 0 }, ANSWER_NONE } },
      { "XDG_RUNTIME_DIR={tmp}" }, "~/.config/chromium and every other profile, the bus, the display", SOCKETS_WITH_A_ROOT, true },
    { "media", { "ffmpeg", "ffprobe", "convert*", "identify*", "magick*", "mogrify*", "composite*", "montage*", "import*", "compare*", "gs", "inkscape", "rsvg-convert" },
      { "sh", "gs", "rsvg-convert", "dot" }, { 0 }, { "/etc/ImageMagick*", "/usr/lib/ImageMagick*", "/usr/local/etc/ImageMagick*", "/usr/local/lib", "/etc/ghostscript", "/var/lib/ghostscript", "/etc/libvpx", "/etc/pulse/client.conf", "/etc/asound.conf" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "documents", { "pandoc", "libreoffice", "soffice", "pdflatex", "xelatex", "latex", "lualatex", "latexmk", "bibtex", "biber", "tex", "dot", "pdftoppm", "asciidoctor*" },
      { "@shell", "perl", "pdflatex", "xelatex", "lualatex", "latex", "tex", "bibtex", "biber", "makeindex", "kpsewhich", "mktexpk", "mktextfm", "mktexfmt", "dvips", "dvipdfmx", "ps2pdf", "gs" },
      { "/usr/lib/libreoffice", "/usr/lib/pandoc" }, { "/etc/libreoffice", "/etc/texmf", "/var/lib/texmf", "/usr/lib/libreoffice" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "mariadb", { "mysql*", "mariadb*" }, { "@shell", "my_print_defaults", "resolveip", "mysqld", "mariadbd", "mariadb", "hostname" },
      { "/usr/lib/mysql", "/usr/lib/mariadb*" }, { "/etc/mysql/conf.d", "/etc/mysql/mariadb.conf.d", "/etc/mysql/mariadb.cnf", "/etc/mysql/my.cnf", "/etc/my.cnf" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.my.cnf, /etc/mysql/debian.cnf, /var/lib/mysql", SOCKETS_WITH_A_ROOT },
    { "databases", { "psql", "pg_*", "postgres", "initdb", "redis-*", "sqlite3" }, { "sh", "redis-check-rdb" },
      { "/usr/lib/postgresql/*/bin" }, { "/usr/lib/postgresql", "/etc/postgresql-common" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.pgpass, ~/.my.cnf", SOCKETS_WITH_A_ROOT, true },
    { "terminals that stay", { "tmux", "screen" }, { "@shell", "sh" }, { 0 }, { "/etc/tmux.conf", "/etc/screenrc" }, { { { 0 }, ANSWER_NONE } }, { "TMUX_TMPDIR={tmp}", "SCREENDIR={tmp}/.screen" }, NULL, SOCKETS_WITH_A_ROOT },
    { "runners of scripts", { "zx", "turbo", "nx", "lerna", "concurrently", "concurrent", "npm-run-all*", "run-s", "run-p", "wireit", "just", "task", "husky", "lint-staged", "changeset", "semantic-release", "electron*" },
      { "@shell", "node", "npm", "npx", "pnpm", "yarn", "git" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "watchers that stay", { "tsx", "turbo", "nx", "watchman*", "nodemon" }, { "sh", "node", "npm" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { "TURBO_TELEMETRY_DISABLED=1", "NX_DAEMON=false" }, NULL, SOCKETS_WITH_A_ROOT, true },
    { "debuggers", { "gdb*", "lldb*", "valgrind*", "strace", "ltrace" }, { "sh", "addr2line" }, { "/usr/libexec/valgrind", "/usr/lib/valgrind" }, { "/etc/gdb", LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "yarn", { "yarn", "yarnpkg" }, { "node" }, { 0 }, { "/usr/etc/npmrc", "/usr/local/etc/npmrc" }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.yarnrc.yml, ~/.yarnrc" },
    { "parallel", { "parallel", "sem" }, { "@shell", "perl", "ps" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.parallel" },
    { "queries", { "yq", "xq", "tomlq" }, { "jq" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "indexes", { "ctags*", "cscope", "gtags", "global", "doxygen" }, { "sh", "sort", "dot" }, { 0 }, { LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "addresses", { "ip", "ifconfig" }, { "sh" }, { 0 }, { "/etc/iproute2", "/usr/lib/iproute2" }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL, SOCKETS_NONE, true },
    { "coverage", { "lcov", "geninfo", "genhtml", "gcovr", "kcov" }, { "@shell", "perl", "gcov", "lcov", "geninfo", "genhtml", "c++filt", "gzip", "gunzip" }, { 0 }, { "/etc/lcovrc", LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, "~/.lcovrc" },
    { "compilation databases", { "bear", "intercept-build", "scan-build*" }, { "sh", "cc", "gcc", "g++", "clang" }, { "/usr/lib/*/bear", "/usr/lib/bear", "/usr/libexec/bear", "/usr/lib/*/bear/wrapper.d" },
      { LIBRARIES }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
    { "terminals", { "script", "watch", "xargs", "find", "awk", "gawk", "mawk", "entr", "time", "lua" }, { "sh" }, { 0 }, { 0 }, { { { 0 }, ANSWER_NONE } }, { 0 }, NULL },
};
/* clang-format on */

const unsigned recipe_count = ARRAY_LEN (recipes);
