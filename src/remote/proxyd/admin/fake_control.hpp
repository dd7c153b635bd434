// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A daemon for tests: tells the sample status, notes what it is told to do, and answers
// at once or, `hold`ing, when the test says so.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "remote/proxyd/admin/sample_status.hpp"

namespace sluice::proxyd {

class FakeControl : public Control {
public:
    DaemonStatus status = sample_status();
    std::vector<std::string> orders;
    bool hold = false;

    void snapshot(bool with_connections, std::function<void(DaemonStatus)> done) override
    {
        orders.emplace_back(with_connections ? "snapshot with connections" : "snapshot");
        later([this, with_connections, done = std::move(done)] {
            DaemonStatus told = status;
            if (!with_connections)
                told.connections.clear();
            done(std::move(told));
        });
    }
    Result<void> drain(const std::string &service) override { return set_state(service, "draining"); }
    Result<void> resume(const std::string &service) override { return set_state(service, "open"); }
    void close_connection(uint64_t id, std::function<void(Result<void>)> done) override
    {
        orders.push_back("close " + std::to_string(id));
        later([this, id, done = std::move(done)] {
            auto &list = status.connections;
            auto it = std::find_if(list.begin(), list.end(), [id](const auto &one) { return one.id == id; });
            if (it == list.end())
                return done(fail(ENOENT, "no connection " + std::to_string(id)));
            list.erase(it);
            done({});
        });
    }

    size_t held() const { return held_.size(); }
    void let_go()
    {
        for (auto &answer : std::exchange(held_, {}))
            answer();
    }

private:
    void later(std::function<void()> answer)
    {
        if (hold)
            held_.push_back(std::move(answer));
        else
            answer();
    }
    Result<void> set_state(const std::string &name, const char *state)
    {
        orders.push_back(std::string(state) + ' ' + name);
        for (ServiceStatus &service : status.services) {
            if (service.name != name)
                continue;
            if (service.state == state)
                return fail(EALREADY, "\"" + name + "\" is " + state);
            service.state = state;
            return {};
        }
        return fail(ENOENT, "no service \"" + name + "\"");
    }

    std::vector<std::function<void()>> held_;
};

} // namespace sluice::proxyd
