"""`rloop completion`: scripts with which a shell completes what is typed; rloop itself says what can come next."""

from contextlib import suppress

import click

from bydawn.cli.command import command
from bydawn.core.errors import UserError
from bydawn.dialects.rloop.config import STATE
from bydawn.operations.dialects.rloop.configuration import config_folder
from bydawn.system import shared_file

# completions/ has the same files; scripts/docs writes them.
BASH = r"""# Completion for rloop in bash: source <(rloop completion bash)
_rloop() {
    local IFS=$' \t\n' kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" _RLOOP_COMPLETE=bash_complete "$1" 2>/dev/null)
}
complete -F _rloop rloop
"""
ZSH = r"""#compdef rloop
# Completion for rloop in zsh: source <(rloop completion zsh), or as _rloop in a folder of $fpath
_rloop() {
    local kind value about
    local -a plain
    for kind value about in "${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \
        _RLOOP_COMPLETE=zsh_complete "${words[1]}" 2>/dev/null)}"; do
        case $kind in
            plain) plain+=("$value${${about:#_}:+:$about}") ;;
            dir) _files -/ ;;
            file) _files ;;
        esac
    done
    (( ! $#plain )) || _describe rloop plain
}
if [[ $funcstack[1] == _rloop ]]; then _rloop "$@"; else compdef _rloop rloop; fi
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH}


@command()
@click.argument("shell", type=click.Choice([*SCRIPTS]))
def completion(shell: str) -> int:
    """Print what makes a shell complete rloop's words: bash or zsh"""
    click.echo(SCRIPTS[shell], nl=False)
    return 0


def session_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's
    """The sessions whose names begin so; none if there is an error, which no one wants while typing."""
    with suppress(OSError, UserError):
        entries = (shared_file.read(config_folder() / STATE) or {}).get("sessions")
        return [name for name in entries if name.startswith(incomplete)] if isinstance(entries, dict) else []
    return []
