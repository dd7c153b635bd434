// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice drain and sluice resume: a service takes no more connections, and takes them again.

#include "remote/cli/admin_client.hpp"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

int run_order(const Command &command, const char *done, Global global, int argc, char **argv)
{
    CommandLine line(command, global, true);
    auto service = line.parse_one(argc, argv, command.arguments);
    if (!service)
        return fail_with(service.error());
    auto client = AdminClient::make(Loop(), global.admin);
    if (!client)
        return fail_with(client.error());
    auto answer = client->post("/services/" + escape_segment(*service) + "/" + command.name);
    if (!answer)
        return fail_with(answer.error());
    return print(global.json ? *answer : format(_(done), *service) + '\n');
}

int run_drain(Global global, int argc, char **argv)
{
    return run_order(drain_command, N_("\"{}\" takes no more connections; those there are go on"), std::move(global),
                     argc, argv);
}

int run_resume(Global global, int argc, char **argv)
{
    return run_order(resume_command, N_("\"{}\" takes connections"), std::move(global), argc, argv);
}

} // namespace

const Command drain_command{"drain", N_("SERVICE"), N_("Have a service take no more connections"), run_drain};
const Command resume_command{"resume", N_("SERVICE"), N_("Have a service take connections again"), run_resume};

} // namespace sluice::cli
