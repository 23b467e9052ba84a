// tenon.cpp — the tenon program: the command line, with nothing added to it.
#include <tenon/extend.hpp>

int main(int argc, char** argv) { return tenon::command_line(argc, argv); }
