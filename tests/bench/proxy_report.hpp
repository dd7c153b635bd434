// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What has been measured, as a table: one line for each figure of a path, with the medians
// of every contestant, and what the first one's is divided by it. Targets are set against
// those ratios, or against the first one's own figure, and counted.

#include <map>
#include <string>
#include <vector>

#include "proxy_scenarios.hpp"

namespace sluice::bench {

struct Target {
    std::string figure;
    std::string peer; // or "limit"
    bool at_most = true;
    double limit = 0;

    static Target parse(const std::string &text); // FIGURE/PEER<=LIMIT or >=
};

class Report {
public:
    Report(std::vector<std::string> names, std::vector<Target> targets);

    void heading(const std::string &text);
    // `rounds[i]` is what contestant i gave, a round each.
    void add(const std::string &path, const std::vector<std::vector<Figures>> &rounds);
    // One line for each target. How many were missed, or not measured.
    int verdicts() const;

private:
    struct Judged {
        int met = 0, missed = 0;
        double worst = 0;
        std::string worst_path;
    };

    void judge(const std::string &path, const std::string &figure, const std::vector<double> &medians);

    std::vector<std::string> names_;
    std::vector<Target> targets_;
    std::vector<Judged> judged_;
};

} // namespace sluice::bench
