// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A command's options, by GOption: made, given its entries, parsed once. Help is printed
// where it is asked for, and ends the program.
//
//     char *text = nullptr;
//     CommandLine line(status_command, &global);
//     line.add({"interval", 'i', 0, G_OPTION_ARG_STRING, &text, N_("..."), N_("TIME")});
//     auto rest = line.parse(argc, argv);

#include <memory>
#include <string>
#include <vector>

#include <glib.h>

#include "remote/cli/command.hpp"
#include "util/base/result.hpp"

namespace sluice::cli {

class CommandLine {
public:
    // --admin may stand here too, and --json if the command has an output of that kind.
    CommandLine(const Command &command, Global &global, bool json);
    // For the program itself: stops at the first word that is no option.
    CommandLine(const char *arguments, const char *summary, Global &global);
    CommandLine(const CommandLine &) = delete;
    CommandLine &operator=(const CommandLine &) = delete;
    ~CommandLine();

    void add(GOptionEntry entry) { entries_.push_back(entry); }
    // Stands at the end of the help.
    void describe(const std::string &text);

    // The words that are no options. Code: EINVAL.
    Result<std::vector<char *>> parse(int argc, char **argv);
    // The same, for a command that takes exactly one word, `what` it is ("SERVICE"), or none.
    Result<std::string> parse_one(int argc, char **argv, const char *what);
    Result<void> parse_none(int argc, char **argv);

private:
    void add_global(bool json);

    struct Free {
        void operator()(GOptionContext *context) const noexcept { g_option_context_free(context); }
    };
    Global &global_;
    std::string name_;
    std::unique_ptr<GOptionContext, Free> context_;
    std::vector<GOptionEntry> entries_;
    char *admin_ = nullptr;
    gboolean json_ = FALSE;
};

} // namespace sluice::cli
