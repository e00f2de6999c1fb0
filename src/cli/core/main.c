/* main: the program scalemodel. */
#include "program.h"

int main(int argc, char **argv) { return cli_main(&cli_scalemodel, argc, argv); }
