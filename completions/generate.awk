# generate.awk -- makes the completions of one shell out of options.tsv.
#
#     awk -v shell=bash|zsh|fish -f generate.awk options.tsv
#
# The three results complete `samtools-rocksort`. Those of bash and zsh also complete `samtools
# rocksort` (for fish see samtools.fish). `make completions` makes them, so a new option only needs
# a line in options.tsv.

function fail(what)
{
    print "generate.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"
    failed = 1
    exit 1
}

BEGIN {
    FS = "\t"
    if (shell != "bash" && shell != "zsh" && shell != "fish") fail("shell is bash, zsh or fish")
}

/^#/ { next }

# Fields that all shells use: names[], argument[], repeated[], text[], choices[].
{
    if (NF != 3 || $1 !~ /^-[^ ]+( -[^ ]+)*$/ || $2 == "" || $3 == "") fail("three fields expected")
    # Each shell would quote these in another way.
    if ($0 ~ /['\\"`$]/) fail("no quotes, backslashes or dollars here")
    names[++n] = $1
    argument[n] = $2
    repeated[n] = sub(/\.\.\.$/, "", argument[n])
    text[n] = $3
    choices[n] = words_of(argument[n])
}

# The lower-case words of a|b or [a|b], separated by blanks.
function words_of(kind,    word, n_words, i, list)
{
    if (kind !~ /\||^\[/) return ""
    gsub(/[][]/, "", kind)
    n_words = split(kind, word, "|")
    for (i = 1; i <= n_words; i++)
        if (word[i] !~ /[A-Z]/) list = list (list == "" ? "" : " ") word[i]
    return list
}

function is_optional(i)
{
    return argument[i] ~ /^\[/
}

END {
    if (failed) exit 1
    if (shell == "bash") print_bash()
    else if (shell == "zsh") print_zsh()
    else print_fish()
}

# bash: readline completes files and directories itself, with the right quoting.

function print_bash(    i, all, pattern, of_kind)
{
    for (i = 1; i <= n; i++) {
        all = all (i > 1 ? " " : "") names[i]
        pattern = names[i]
        gsub(/ /, " | ", pattern)
        if (argument[i] == "-" || is_optional(i) || choices[i] != "") continue
        if (argument[i] != "FILE" && argument[i] != "DIR") argument[i] = "TEXT"
        if (of_kind[argument[i]] != "") pattern = of_kind[argument[i]] " | " pattern
        of_kind[argument[i]] = pattern
    }
    print "# bash completion of samtools-rocksort and samtools rocksort; made by generate.awk"
    print "_samtools_rocksort()"
    print "{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} prefix=\"\""
    print "    local equals=\"\""
    print "    COMPREPLY=()"
    print "    if [[ ${COMP_WORDS[0]##*/} == samtools ]]; then"
    print "        if ((COMP_CWORD == 1)); then"
    print "            COMPREPLY=($(compgen -W rocksort -- \"$cur\"))"
    print "            return"
    print "        fi"
    print "        case ${COMP_WORDS[1]}:${SAMTOOLS_SORT-} in"
    print "        rocksort:* | sort:rocksort) ;;"
    print "        *) return ;;"
    print "        esac"
    print "    fi"
    print "    # --option=value is one word, or three where readline breaks words at =."
    print "    if [[ $cur == --*=* ]]; then"
    print "        prev=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=} equals=1"
    print "    elif [[ $cur == = ]]; then"
    print "        cur=\"\" equals=1"
    print "    elif [[ $prev == = ]]; then"
    print "        prev=${COMP_WORDS[COMP_CWORD - 2]} equals=1"
    print "    fi"
    print "    case $prev in"
    print "    " of_kind["FILE"] ") return ;;"
    print "    " of_kind["DIR"] ")"
    print "        compopt -o dirnames +o default"
    print "        return"
    print "        ;;"
    print "    " of_kind["TEXT"] ")"
    print "        compopt +o default"
    print "        return"
    print "        ;;"
    for (i = 1; i <= n; i++) {
        if (choices[i] == "") continue
        pattern = names[i]
        gsub(/ /, " | ", pattern)
        print "    " pattern ")"
        # Without = the next word is another argument of the command.
        if (is_optional(i)) print "        if [[ $equals ]]; then"
        print "        compopt +o default"
        print "        COMPREPLY=($(compgen -P \"$prefix\" -W \"" choices[i] "\" -- \"$cur\"))"
        print "        return"
        if (is_optional(i)) print "        fi"
        print "        ;;"
    }
    print "    esac"
    print "    [[ $cur == -* ]] || return"
    print "    COMPREPLY=($(compgen -W \"" all "\" -- \"$cur\"))"
    print "}"
    print "complete -o default -F _samtools_rocksort samtools-rocksort"
    print "complete -p samtools >/dev/null 2>&1 ||"
    print "    complete -o default -F _samtools_rocksort samtools"
}

# zsh: one specification for each name of an option.

function print_zsh(    i, j, n_names, name, described)
{
    print "#compdef samtools-rocksort samtools"
    print "# zsh completion of samtools-rocksort and samtools rocksort; made by generate.awk"
    print "_samtools-rocksort() {"
    print "    if [[ $service == samtools ]]; then"
    print "        if (( CURRENT == 2 )); then"
    print "            compadd rocksort"
    print "            _files"
    print "            return"
    print "        fi"
    print "        if [[ $words[2] != rocksort &&"
    print "              $words[2]:$SAMTOOLS_SORT != sort:rocksort ]]; then"
    print "            _files"
    print "            return"
    print "        fi"
    print "        shift words"
    print "        (( CURRENT-- ))"
    print "    fi"
    print "    local -a specifications=("
    for (i = 1; i <= n; i++) {
        described = text[i]
        gsub(/\[|\]|:/, "\\\\&", described)
        n_names = split(names[i], name, " ")
        for (j = 1; j <= n_names; j++)
            print "        '" (repeated[i] ? "*" : n_names > 1 ? "(" names[i] ")" : "") \
                  zsh_name(i, name[j]) "[" described "]" zsh_argument(i) "'"
    }
    print "    )"
    print "    _arguments -s -S $specifications '*:input file:_files'"
    print "}"
    print "_samtools-rocksort \"$@\""
}

# -o+ takes its argument in the same word or the next, --long= after = or in the next word, --long=-
# only after =.
function zsh_name(i, name)
{
    if (argument[i] == "-") return name
    if (is_optional(i)) return name "=-"
    return name (name ~ /^--/ ? "=" : "+")
}

function zsh_argument(i,    shown)
{
    if (argument[i] == "-") return ""
    if (argument[i] == "FILE") return ":file:_files"
    if (argument[i] == "DIR") return ":directory:_path_files -/"
    shown = tolower(argument[i])
    gsub(/\[|\]/, "", shown)
    if (is_optional(i)) return "::" shown ":" (choices[i] == "" ? " " : "(" choices[i] ")")
    if (choices[i] == "") return ":" shown ": "
    return ":value:(" choices[i] ")"
}

# fish: -x is for an argument that is no file, -r -F for one that is a file.

function print_fish(    i, j, n_names, name, line)
{
    print "# fish completion of samtools-rocksort; made by generate.awk"
    for (i = 1; i <= n; i++) {
        line = "complete -c samtools-rocksort"
        n_names = split(names[i], name, " ")
        for (j = 1; j <= n_names; j++)
            line = line (name[j] ~ /^--/ ? " -l " substr(name[j], 3) : " -s " substr(name[j], 2))
        if (argument[i] == "FILE") line = line " -r -F"
        else if (argument[i] == "DIR") line = line " -x -a '(__fish_complete_directories)'"
        else if (choices[i] != "") line = line (is_optional(i) ? "" : " -x") " -a '" choices[i] "'"
        else if (argument[i] != "-" && !is_optional(i)) line = line " -x"
        print line " -d '" text[i] "'"
    }
}
