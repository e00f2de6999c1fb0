A=$A$A
B=${A:-$((1+B))}
x --f "$A${B}`c`$(d $(e))" \
 -g='h i' &>/dev/null
OPT=" --a --b=$Q "
