#include "cli/cli.h"

int main(int argc, char** argv) { return belljar::cli::main({argv + 1, argv + argc}); }
