# SPDX-License-Identifier: Apache-2.0
#
# What every script of this folder shares: where the cache is, how progress is said, how a cached step is skipped.
# Sourced, never run. Always true: a stamp is written only after its step has succeeded, so an interrupted step runs again.

set -euo pipefail

repo_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache_dir=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/murmur
tools_dir=$cache_dir/tools

say () { printf '%s: %s\n' "${script_name:-murmur}" "$*" >&2; }

die () {
    say "$1"
    shift
    local remedy
    for remedy in "$@"; do
        printf '  hint: %s\n' "$remedy" >&2
    done
    exit 1
}

# hash_of WORD... : 16 hex digits of the words, one a line.
hash_of () { printf '%s\n' "$@" | sha256sum | cut -c1-16; }

# hash_of_files FILE... : 16 hex digits of their names and contents, in the order given.
hash_of_files () { (cd "$repo_dir" && sha256sum -- "$@") | sha256sum | cut -c1-16; }

# is_stamped FILE HASH : the step that wrote FILE last did so for this very HASH.
is_stamped () { [[ -f $1 && $(<"$1") == "$2" ]]; }

stamp () {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "$2" >"$1.$$" && mv "$1.$$" "$1"
}

# took START : seconds since START, for progress lines.
took () { printf '%d s' "$((SECONDS - $1))"; }

# logged NAME COMMAND... : runs it with its output in a log file; on failure shows the end of that and stops.
logged () {
    local name=$1 log=$cache_dir/log/$1.log
    shift
    mkdir -p "$cache_dir/log"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 25 "$log" >&2
        die "$name failed" "the whole output is in $log"
    fi
}

# The cargo to use: Rust $rust_wanted or newer. Looks at \$PATH, then at rustup's usual folder, then (under sudo) at the
# calling user's. Sets `cargo` and exports what rustup needs to find its toolchain.
rust_wanted=1.95
rust_version_is_enough () { # "rustc 1.95.0 (...)"
    local major minor
    IFS=. read -r major minor _ <<<"${1#rustc }"
    ((major > 1 || minor >= ${rust_wanted#1.}))
}
find_cargo () {
    local home found candidate version
    local -a places=("")
    home=${HOME}
    places+=("$home/.cargo/bin/")
    if [[ -n ${SUDO_USER:-} ]]; then
        home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
        places+=("$home/.cargo/bin/")
    fi
    places+=("/usr/local/cargo/bin/" "/opt/rust/bin/")
    found=""
    for candidate in "${places[@]}"; do
        command -v "${candidate}cargo" >/dev/null 2>&1 && command -v "${candidate}rustc" >/dev/null 2>&1 || continue
        if ! version=$("${candidate}rustc" --version 2>/dev/null); then
            # A rustup proxy whose toolchains lie under another home than $HOME.
            local bin_dir
            bin_dir=$(dirname "$(command -v "${candidate}cargo")")
            local rustup_home=${bin_dir%/.cargo/bin}/.rustup
            [[ -d $rustup_home ]] || continue
            version=$(RUSTUP_HOME=$rustup_home "${candidate}rustc" --version 2>/dev/null) || continue
            rust_version_is_enough "$version" || { found=$version; continue; }
            export RUSTUP_HOME=$rustup_home
        fi
        if rust_version_is_enough "$version"; then
            cargo=$(command -v "${candidate}cargo")
            export PATH="$(dirname "$cargo"):$PATH"
            return 0
        fi
        found=$version
    done
    die "Rust $rust_wanted or newer is needed once, to build the component engine (found: ${found:-none})" \
        "install rustup from your distribution or from its own page, then: rustup toolchain install $rust_wanted" \
        "the distribution's own rustc is enough when it is $rust_wanted or newer"
}
