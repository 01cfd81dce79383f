#!/bin/sh
# Installs rloop, and bydawn, which it is part of, in an environment of their own. Run it again to upgrade.
#
#   ./install.sh                    in a checkout: installs that checkout
#   curl -fsSL …/install.sh | sh    installs the wheel of the release that it came from
#
# RLOOP_SOURCE   what to install instead: a folder, a wheel, or whatever else pip takes
# RLOOP_HOME     where the environment goes  [default: ~/.local/share/rloop; as root: /opt/rloop]
# RLOOP_BIN      where the commands go       [default: ~/.local/bin; as root: /usr/local/bin]
# RLOOP_YES=1    yes to every question; without a terminal nothing is asked, and the answer is no
#
# Above the last line there are only functions: a download that was cut off runs nothing.
set -eu
release='' # in a release: the address of its wheel, which is attached beside this script
mark=.made-by-install.sh # a file in each environment that this script made; no other folder is ever removed

say() { printf '%s\n' "$@"; }

fail() { # WHAT [HINT]
    printf 'error: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf ' hint: %s\n' "$2" >&2
    exit 1
}

agreed() { # QUESTION
    [ "${RLOOP_YES:-}" != 1 ] || return 0
    (: </dev/tty) 2>/dev/null || return 1
    printf '%s [y/N] ' "$1" >/dev/tty
    read -r answer </dev/tty || return 1
    case $answer in [yY] | [yY][eE][sS]) ;; *) return 1 ;; esac
}

has() { command -v "$1" >/dev/null 2>&1; }

choose_places() {
    [ -n "${HOME:-}" ] || fail "HOME is not set" "set it to your home folder"
    share=${XDG_DATA_HOME:-$HOME/.local/share}
    home=${RLOOP_HOME:-$share/rloop} bin=${RLOOP_BIN:-$HOME/.local/bin}
    if [ "$(id -u)" = 0 ]; then
        share=/usr/local/share
        home=${RLOOP_HOME:-/opt/rloop} bin=${RLOOP_BIN:-/usr/local/bin}
    fi
    [ -z "${RLOOP_BIN:-}" ] || share=${RLOOP_BIN%/*}/share
    case $home:$bin in /*:/*) ;; *) fail "RLOOP_HOME and RLOOP_BIN must begin with /" ;; esac
}

choose_source() { # for a script that came through a pipe, $0 is the shell
    folder=$(cd "$(dirname "$0")" 2>/dev/null && pwd) || folder=
    source=$release
    if [ -n "${RLOOP_SOURCE:-}" ]; then
        source=$RLOOP_SOURCE
    elif [ "${0##*/}" = install.sh ] && grep -q '^name = "bydawn"' "$folder/pyproject.toml" 2>/dev/null; then
        source=$folder
    fi
    [ -n "$source" ] ||
        fail "this install.sh is of no release" "run it in a checkout, or say what to install with RLOOP_SOURCE"
}

refuse_foreign_files() {
    for file in "$bin/rloop" "$bin/bydawn" "$home/venv"; do
        [ -e "$file" ] || [ -L "$file" ] || continue
        case $(readlink "$file") in "$home/venv/bin/${file##*/}" | venv-??????) continue ;; esac
        fail "$file is there already, and install.sh did not make it; nothing was changed" \
            "move it away, or choose other folders with RLOOP_BIN and RLOOP_HOME"
    done
}

find_python() { # Debian's has no ensurepip, and so makes no environments, without a package of its own
    python='' bare=''
    for each in python3 python3.14 python3.13 python3.12 python3.11; do
        "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        bare=${bare:-$each}
        ! "$each" -c 'import ensurepip, venv' >/dev/null 2>&1 || { python=$each && return; }
    done
}

look_for_programs() {
    missing='' debian='' brew=''
    find_python
    if [ -z "$python" ]; then
        missing="Python 3.11 or newer" debian="python3 python3-venv" brew=python
        for each in 3.13 3.12 3.11; do # Ubuntu 22.04 has 3.10 as python3, and 3.11
            ! apt-cache show "python$each-venv" >/dev/null 2>&1 || { debian="python$each python$each-venv" && break; }
        done
    fi
    if [ -z "$python" ] && [ -n "$bare" ]; then
        missing="the venv module of $bare"
        debian=$("$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    fi
    if ! git --version >/dev/null 2>&1; then # a new Mac has a git that only offers to install one
        missing="${missing:+$missing and }git" debian="${debian:+$debian }git" brew="${brew:+$brew }git"
    fi
}

require_programs() {
    look_for_programs
    [ -n "$missing" ] || return 0
    root=
    [ "$(id -u)" = 0 ] || root="sudo "
    if has apt-get; then
        line="${root}apt-get update; ${root}apt-get install -y $debian"
    elif has brew; then
        line="brew install $brew"
    else
        fail "$missing not found" "install it with this system's package manager, and run this again"
    fi
    say "rloop needs $missing:" "  $line"
    agreed "Run that now?" || fail "$missing not found" "run that line, then install.sh again"
    # shellcheck disable=SC2086 # several packages, and as root no sudo
    if has apt-get; then
        $root apt-get update -qq || true # another source that does not answer need not be in the way
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $debian || fail "apt-get failed" "see above"
    else
        brew install $brew || fail "brew failed" "see above"
    fi
    look_for_programs
    [ -z "$missing" ] || fail "$missing not found, even now" "install it by hand, and run this again"
}

build() { # beside the environment in use, which stays as it is until this one works
    mkdir -p "$home" "$bin" && [ -w "$home" ] && [ -w "$bin" ] ||
        fail "cannot write to $home and $bin" "choose other folders with RLOOP_HOME and RLOOP_BIN"
    new=$(mktemp -d "$home/venv-XXXXXX")
    trap 'rm -rf "$new"; rmdir "$home" 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM HUP
    : >"$new/$mark"
    chmod 755 "$new"
    say "Installing $source with $("$python" --version) …"
    "$python" -m venv "$new" || fail "cannot make an environment" "see above; nothing was changed"
    "$new/bin/python" -m pip --quiet --disable-pip-version-check install --no-user -- "$source" ||
        fail "cannot install $source" "see above; nothing was changed"
    { version=$("$new/bin/rloop" --version) && "$new/bin/rloop" --help >/dev/null; } ||
        fail "the rloop that $source installs does not work" "see above; nothing was changed"
}

switch() {
    ln -s "${new##*/}" "$new/link"
    "$python" -c 'import os, sys; os.replace(*sys.argv[1:])' "$new/link" "$home/venv"
    trap - EXIT
    for name in rloop bydawn; do
        [ -L "$bin/$name" ] || ln -s "$home/venv/bin/$name" "$bin/$name"
    done
}

in_use() { # ENVIRONMENT; by a loop of this user or, on Linux, by any process that we may look at
    ! "$home/venv/bin/bydawn" status --all --json 2>/dev/null | grep -q '"alive": true' || return 0
    # shellcheck disable=SC2062 # files; the pattern comes by stdin, or grep would find itself
    printf '%s/bin/\n' "$1" | grep -q -a -F --file=- /proc/[0-9]*/cmdline 2>/dev/null
}

remove_old() {
    for old in "$home"/venv-*; do
        [ -f "$old/$mark" ] && [ "${old##*/}" != "$(readlink "$home/venv")" ] || continue
        if in_use "$old"; then
            say "Loops that are running stay with the old version. The next upgrade removes it."
        else
            rm -rf "$old"
        fi
    done
}

add_completion() { # SHELL FILE
    text=$("$home/venv/bin/rloop" completion "$1") || return 0
    if [ -e "$2" ] && ! grep -q _RLOOP_COMPLETE "$2"; then
        say "Left $2 as it is: install.sh did not make it."
    elif ! { mkdir -p "${2%/*}" && say "$text" >"$2"; } 2>/dev/null; then
        say "Could not write $2: $1 will not complete what you type."
    fi
}

set_up() {
    add_completion bash "$share/bash-completion/completions/rloop"
    add_completion zsh "$share/zsh/site-functions/_rloop"
    [ -z "${SUDO_USER:-}" ] || return 0 # the settings would be root's, perhaps in somebody else's home
    "$home/venv/bin/rloop" config init || say "Could not write config.yaml; rloop works without it."
}

tell() {
    say "" "Installed $bin/rloop ($version)." "" "  rloop start ."
    say "  rloop start ~/project --name myapp --max-iterations 50" "  rloop status"
    say "  rloop logs myapp --follow" "  rloop stop myapp" ""
    found=$(command -v rloop) || found=
    case $found in
        "$bin/rloop") ;;
        "") say "$bin is not on your PATH. Add this to ~/.profile (zsh: ~/.zshrc):" "  export PATH=\"$bin:\$PATH\"" ;;
        *) say "Another rloop comes first on your PATH: $found" ;;
    esac
    if has zsh && [ "$(id -u)" != 0 ]; then
        say "For completion in zsh, add this to ~/.zshrc, above compinit:" "  fpath=($share/zsh/site-functions \$fpath)"
    fi
    if ! has claude; then
        say "Claude Code was not found. To install it:" "  npm install -g @anthropic-ai/claude-code"
        say "Other agents work too: rloop backends"
    fi
    say "jq, tmux and curl are not needed. To upgrade, run install.sh again; to remove it, uninstall.sh."
}

main() {
    [ "$#" = 0 ] || fail "unknown option: $*" "install.sh has none; its first lines list the variables that it reads"
    umask 022
    unset PYTHONPATH PYTHONHOME
    choose_places
    choose_source
    refuse_foreign_files
    require_programs
    build
    switch
    remove_old
    set_up
    tell
}

main "$@" </dev/null
