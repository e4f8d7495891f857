# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash of Viaduct's tools. It takes options and their values from what the tool says with --help, so that
# a tool only has to be named in the last line, and in the list of tools in tools/CMakeLists.txt.

# Prints a line for each option in the output of --help: its long name, its short name or "-", whether it takes a value,
# and the values if its description lists them as in "vipl, dat, rpma or core".
_viaduct_options() {
    awk '
        function finish(values) {
            if (name == "") return
            gsub(/ *\([^)]*\)/, "", text)
            sub(/^.*: /, "", text)
            sub(/ +$/, "", text)
            values = text ~ /^[a-z]+(, [a-z]+)* or [a-z]+$/ ? text : ""
            gsub(/, | or /, " ", values)
            print name, short, takes, values
            name = ""
        }
        /^  -/ {
            finish()
            rest = substr($0, 3)
            short = "-"
            if (match(rest, /^-. \[ /)) {
                short = substr(rest, 1, 2)
                rest = substr(rest, 6)
            }
            match(rest, /^--[a-z-]+/)
            name = substr(rest, 1, RLENGTH)
            rest = substr(rest, RLENGTH + 1)
            sub(/^ \]/, "", rest)
            takes = rest ~ /^ [[A-Z]/ ? "value" : "nothing"
            sub(/^ [][A-Z]+( \(=[^)]*\))?/, "", rest)
            sub(/^ +/, "", rest)
            text = rest
            next
        }
        /^ +[^ ]/ && name != "" {
            sub(/^ +/, " ")
            text = text $0
            gsub(/  +/, " ", text)
            next
        }
        { finish() }
        END { finish() }'
}

_viaduct() {
    local tool=$1 current=$2 previous=$3 help options
    COMPREPLY=()
    # Bash separates --option=value into three words.
    [ "$current" = = ] && current=
    [ "$previous" = = ] && previous=${COMP_WORDS[COMP_CWORD - 2]}
    help=$("$tool" --help 2>/dev/null) || return
    options=$(_viaduct_options <<<"$help")

    local name short takes values
    while read -r name short takes values; do
        [ "$takes" = value ] || continue
        if [ "$previous" = "$name" ] || [ "$previous" = "$short" ]; then
            mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
            return
        fi
    done <<<"$options"

    local word programs=0
    for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
        [[ $word == -* ]] || programs=1
    done
    case $help in
        *PROGRAM*) [ $programs -eq 1 ] && return ;; # the options are those of that program
    esac
    local commands
    commands=$(sed -n "s/^\(Usage: \| *\)${tool##*/} \([a-z][a-z]*\) .*/\2/p" <<<"$help")
    if [ -n "$commands" ] && [ "$programs" -eq 0 ] && [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
        return
    fi
    case $current in
        -*) mapfile -t COMPREPLY < <(compgen -W "$(cut -d ' ' -f 1 <<<"$options")" -- "$current") ;;
        *)
            case $help in
                *PROGRAM*) mapfile -t COMPREPLY < <(compgen -A command -- "$current") ;;
                *HOST*) mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") ;;
            esac
            ;;
    esac
}

complete -o bashdefault -o default -F _viaduct vi-ping vi-perf vi-info vi-run vi-port
