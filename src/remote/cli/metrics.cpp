// SPDX-License-Identifier: LGPL-2.1-or-later

// sluice metrics: what Prometheus would read.

#include "remote/cli/admin_client.hpp"
#include "remote/cli/command_line.hpp"
#include "remote/cli/report.hpp"
#include "util/glib/i18n.hpp"

namespace sluice::cli {
namespace {

int run_metrics(Global global, int argc, char **argv)
{
    CommandLine line(metrics_command, global, false);
    auto parsed = line.parse_none(argc, argv);
    if (!parsed)
        return fail_with(parsed.error());
    auto client = AdminClient::make(Loop(), global.admin);
    if (!client)
        return fail_with(client.error());
    auto answer = client->get("/metrics");
    return answer ? print(*answer) : fail_with(answer.error());
}

} // namespace

const Command metrics_command{"metrics", "", N_("Print the metrics, as Prometheus reads them"), run_metrics};

} // namespace sluice::cli
