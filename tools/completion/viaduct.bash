# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash of Viaduct's tools. It takes options and their values from what the tool says with --help, so that
# a tool only has to be named in the last line, and in the list of tools in tools/CMakeLists.txt.

# Prints a line for each option in the output of --help: its long name, its short name or "-", what it takes, and the
# values if its description lists them as in "vipl, dat, rpma or core". It takes "nothing", a "value" or a "host" (the
# next word), an "optional" value, or a value that is "attached" to it: --option=value.
_viaduct_options() {
    awk '
        function finish(values) {
            if (name == "") return
            gsub(/ *\([^)]*\)/, "", text)
            sub(/^.*: /, "", text)
            sub(/, by .*$/, "", text)
            sub(/ +$/, "", text)
            if (takes == "value") sub(/^.* of /, "", text)
            values = text ~ /^[a-z0-9-]+(, [a-z0-9-]+)* or [a-z0-9-]+$/ ? text : ""
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
            takes = rest ~ /^ HOST/ ? "host" : rest ~ /^ [A-Z]/ ? "value" : rest ~ /^ \[=/ ? "attached" : \
                rest ~ /^ \[[A-Z]/ ? "optional" : "nothing"
            sub(/^ [][A-Z:=]+( \(=[^)]*\))?/, "", rest)
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
    local tool=$1 current=$2 previous=$3 attached=0 help usage options
    COMPREPLY=()
    # Bash separates --option=value into three words.
    [ "$current" = = ] && current='' attached=1
    [ "$previous" = = ] && previous=${COMP_WORDS[COMP_CWORD - 2]} attached=1
    help=$("$tool" --help 2>/dev/null) || return
    usage=$(sed -n '/^$/q; s/--[a-z-]* [][A-Z:]*//g; p' <<<"$help") # without values of options
    options=$(_viaduct_options <<<"$help")

    local i word programs=0 with_value
    with_value=" $(awk '$3 == "value" || $3 == "host" { printf "%s %s ", $1, $2 }' <<<"$options")"
    for ((i = 1; i < COMP_CWORD; ++i)); do
        word=${COMP_WORDS[i]}
        case $word in
            =) i=$((i + 1)) ;;
            -*) [ "${COMP_WORDS[i + 1]}" != = ] && [[ $with_value == *" $word "* ]] && i=$((i + 1)) ;;
            *) programs=1 ;;
        esac
    done
    case $usage in
        *PROGRAM*) [ $programs -eq 1 ] && return ;; # the options are those of that program
    esac

    local name short takes values
    while read -r name short takes values; do
        case $takes in
            nothing) continue ;;
            attached) [ $attached -eq 1 ] || continue ;;
        esac
        if [ "$previous" = "$name" ] || [ "$previous" = "$short" ]; then
            if [ "$takes" = host ]; then
                mapfile -t COMPREPLY < <(compgen -A hostname -- "$current")
            else
                mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
            fi
            return
        fi
    done <<<"$options"

    local commands
    commands=$(sed -n "s/^\(Usage: \| *\)${tool##*/} \([a-z][a-z]*\) .*/\2/p" <<<"$help")
    if [ -n "$commands" ] && [ "$programs" -eq 0 ] && [[ $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
        return
    fi
    case $current in
        -*) mapfile -t COMPREPLY < <(compgen -W "$(cut -d ' ' -f 1 <<<"$options")" -- "$current") ;;
        *)
            case $usage in
                *PROGRAM*) mapfile -t COMPREPLY < <(compgen -A command -- "$current") ;;
                *HOST*) mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") ;;
            esac
            ;;
    esac
}

complete -o bashdefault -o default -F _viaduct vi-ping vi-perf vi-info vi-run vi-port
