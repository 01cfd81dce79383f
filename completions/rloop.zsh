#compdef rloop
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
