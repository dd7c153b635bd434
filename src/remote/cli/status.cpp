// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice status: what a sluiced does, once.

#include <unistd.h>

#include "remote/cli/admin_client.hpp"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "remote/cli/status_view.hpp"
#include "util/glib/i18n.hpp"

namespace sluice::cli {
namespace {

int run_status(Global global, int argc, char **argv)
{
    gboolean connections = FALSE;
    CommandLine line(status_command, global, true);
    line.add({"connections", 'c', 0, G_OPTION_ARG_NONE, &connections, N_("Show each connection too"), nullptr});
    auto parsed = line.parse_none(argc, argv);
    if (!parsed)
        return fail_with(parsed.error());
    auto client = AdminClient::make(Loop(), global.admin);
    if (!client)
        return fail_with(client.error());
    auto answer = client->get(connections ? "/status" : "/status?connections=no");
    if (!answer)
        return fail_with(answer.error());
    auto status = parse_status(*answer);
    if (!status)
        return fail_with(status.error());
    if (global.json)
        return print(*answer);
    const bool colours = wants_colours(STDOUT_FILENO);
    std::string text;
    for (const Line &shown : status_view(*status, connections))
        text += paint(shown, colours) + '\n';
    return print(text);
}

} // namespace

const Command status_command{"status", "", N_("Show services, upstreams and connections"), run_status};

} // namespace sluice::cli
