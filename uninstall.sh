#!/bin/sh
# Removes what install.sh made. Settings, sessions and logs stay, unless --purge is added and confirmed.
# RLOOP_HOME and RLOOP_BIN say where it is, as for install.sh; RLOOP_YES=1 is a yes to the question.
set -eu
mark=.made-by-install.sh

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

ask_python() { "$home/venv/bin/python" -c "$1" 2>/dev/null; }

refuse_while_a_service_uses_it() { # it would start a program that is gone, at every boot
    for unit in "${XDG_CONFIG_HOME:-$HOME/.config}"/systemd/user/*.service; do
        ! grep -qsE "^ExecStart=\"?($home/venv|$bin/bydawn)" "$unit" ||
            fail "a service starts it, so nothing was removed: $unit" "$bin/bydawn service remove"
    done
}

refuse_while_loops_run() { # a damaged environment names none, and can be removed too
    running=$("$home/venv/bin/bydawn" status --all --json 2>/dev/null | ask_python 'import json, sys
for each in json.load(sys.stdin)["loops"]:
    if each["alive"]: print(each["loop"], "in", each["workspace"])') || running=
    [ -z "$running" ] || fail "still running, so nothing was removed: $running" "$bin/bydawn stop --all"
    for each in "$home"/venv-*; do # loops of other users, for example
        # shellcheck disable=SC2062 # files; the pattern comes by stdin, or grep would find itself
        users=$(printf '%s/bin/\n' "$each" | grep -l -a -F --file=- /proc/[0-9]*/cmdline 2>/dev/null) || true
        users=$(say "$users" | tr -dc '0-9\n' | tr '\n' ' ')
        [ -z "${users%% }" ] || fail "processes still run from $each, so nothing was removed: $users"
    done
}

remove() {
    for file in "$bin/rloop" "$bin/bydawn"; do
        [ "$(readlink "$file" 2>/dev/null)" != "$home/venv/bin/${file##*/}" ] || rm "$file"
    done
    for file in "$share/bash-completion/completions/rloop" "$share/zsh/site-functions/_rloop"; do
        ! grep -qs _RLOOP_COMPLETE "$file" || rm "$file"
    done
    rm "$home/venv"
    for each in "$home"/venv-*; do
        [ ! -f "$each/$mark" ] || rm -rf "$each"
    done
    rmdir "$home" 2>/dev/null || true
}

main() {
    case "$*" in "" | --purge) ;; *) fail "unknown option: $*" "uninstall.sh [--purge]" ;; esac
    choose_places
    [ -L "$home/venv" ] || fail "rloop is not in $home" "RLOOP_HOME=… if install.sh was run with it"
    refuse_while_a_service_uses_it
    refuse_while_loops_run
    config=${RLOOP_CONFIG_DIR:-$HOME/.config/rloop}
    states=$(ask_python 'from bydawn.system.user_folders import state_folder; print(state_folder())') ||
        states=${XDG_STATE_HOME:-$HOME/.local/state}/bydawn
    if [ "$*" = --purge ] && ! agreed "Delete $config and $states, with the history of all loops?"; then
        fail "nothing was removed: --purge was not confirmed" "leave it out, or set RLOOP_YES=1"
    fi
    remove
    if [ "$*" = --purge ]; then
        rm -rf "$config" "$states"
        say "rloop, its settings and all sessions are removed. Logs stay in the .rloop folder of each project."
    else
        say "rloop is removed. Settings and sessions stay: $config, $states"
    fi
}

main "$@" </dev/null
