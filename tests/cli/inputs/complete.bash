# What bash offers for command lines, by the script that `scalemodel completion bash` prints. Each
# argument is a line as bash cuts it: at blanks, '=' and ':'.
. <(scalemodel completion bash)
compopt() { :; }
for line; do
    COMP_LINE="scalemodel ${line// = /=}" COMP_POINT=${#COMP_LINE}
    IFS=' ' read -ra COMP_WORDS <<<"scalemodel $line"
    [ "${line% }" = "$line" ] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _scalemodel
    echo "$line -> ${COMPREPLY[*]}"
done
