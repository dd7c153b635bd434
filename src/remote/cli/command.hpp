// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The commands of sluice. Each is a file of its own with a `const Command` in it, and a
// line in the table of main.cpp. A command gets its own arguments, its name first, reads
// them with CommandLine (command_line.hpp), and gives back an exit status.

#include <string>

#include <sysexits.h>

namespace sluice::cli {

// What can be said before the command; a command may let it be said after it too.
struct Global {
    std::string admin; // address of the admin socket; empty: the usual place
    bool json = false;
};

struct Command {
    const char *name;
    const char *arguments; // as the help shows them; empty: none
    const char *summary;   // marked for translation
    int (*run)(Global global, int argc, char **argv);
};

extern const Command status_command;
extern const Command top_command;
extern const Command drain_command;
extern const Command resume_command;
extern const Command close_command;
extern const Command metrics_command;

} // namespace sluice::cli
