// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice: the command line of Sluice. Finds the command and hands over.

#include <clocale>
#include <csignal>
#include <exception>
#include <string_view>

#include <sluice/version.h>

#include "config.h"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

const Command *const commands[] = {
    &status_command, &top_command, &drain_command, &resume_command, &close_command, &metrics_command,
};

std::string list_of_commands()
{
    std::string text = std::string(_("Commands:")) + '\n';
    for (const Command *command : commands) {
        const std::string usage = std::string(command->name) + (*command->arguments ? " " : "") +
                                  (*command->arguments ? _(command->arguments) : "");
        text += fmt::format("  {:<24}{}\n", usage, _(command->summary));
    }
    return text + '\n' + _("\"sluice COMMAND --help\" tells the options of a command");
}

int run(int argc, char **argv)
{
    translation_setup = [] {
        setlocale(LC_ALL, "");
        bindtextdomain("sluice", SLUICE_LOCALEDIR);
    };
    set_up_translation();
    signal(SIGPIPE, SIG_IGN);

    Global global;
    gboolean version = FALSE;
    CommandLine line(N_("COMMAND [ARGUMENT...]"), N_("Look into a running sluiced, and tell it what to do."), global);
    line.add({"version", 'V', 0, G_OPTION_ARG_NONE, &version, N_("Show the version and exit"), nullptr});
    line.describe(list_of_commands());
    auto words = line.parse(argc, argv);
    if (!words)
        return fail_with(words.error());
    if (version)
        return print("sluice " SLUICE_VERSION "\n");
    if (words->empty())
        return fail_with({EINVAL, _("no command; sluice --help lists them")});
    for (const Command *command : commands) {
        if (std::string_view(command->name) == words->front()) {
            const int count = static_cast<int>(words->size());
            words->push_back(nullptr);
            return command->run(std::move(global), count, words->data());
        }
    }
    return fail_with({EINVAL, format(_("there is no command \"{}\"; sluice --help lists them"), words->front())});
}

} // namespace
} // namespace sluice::cli

int main(int argc, char **argv)
{
    try {
        return sluice::cli::run(argc, argv);
    } catch (const std::exception &error) {
        sluice::cli::complain(error.what());
        return EX_SOFTWARE;
    }
}
