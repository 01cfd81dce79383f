# Completion for rloop in bash: source <(rloop completion bash)
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
