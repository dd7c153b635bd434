// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice close: ends a connection.

#include "remote/cli/admin_client.hpp"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "util/base/parse.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

int run_close(Global global, int argc, char **argv)
{
    CommandLine line(close_command, global, true);
    auto text = line.parse_one(argc, argv, close_command.arguments);
    if (!text)
        return fail_with(text.error());
    auto id = parse_number<uint64_t>(*text);
    if (!id)
        return fail_with(
            {EINVAL, format(_("\"{}\" is no connection: \"sluice status --connections\" shows their numbers"), *text)});
    auto client = AdminClient::make(Loop(), global.admin);
    if (!client)
        return fail_with(client.error());
    auto answer = client->post(fmt::format("/connections/{}/close", *id));
    if (!answer)
        return fail_with(answer.error());
    return print(global.json ? *answer : format(_("connection {} is closed"), *id) + '\n');
}

} // namespace

const Command close_command{"close", N_("ID"), N_("Close a connection"), run_close};

} // namespace sluice::cli
