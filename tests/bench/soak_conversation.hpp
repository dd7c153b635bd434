// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Both ends of one conversation through the proxy, and the account of it: what each end
// has sent must have arrived at the other, unless one of the two was cut off on purpose.

#include <memory>
#include <string>
#include <vector>

#include "soak_end.hpp"

namespace sluice::bench {

class Conversation {
public:
    Conversation(int epoll, const Plan &plan, uint64_t seed, int64_t now_usec);
    Conversation(const Conversation &) = delete;
    Conversation &operator=(const Conversation &) = delete;

    const Plan &plan() const { return plan_; }
    void start(UniqueFd client);
    // The upstream has accepted it and read its number.
    void attach(UniqueFd server);
    bool attached() const { return server_.opened(); }

    // Whatever arrives from now on, or does not, nobody is to blame.
    void cut() { cut_ = true; }
    bool is_cut() const { return cut_; }
    void upstream_died();

    // After epoll has told of one end, and now and then without that.
    struct Ear {
        Conversation *conversation;
        bool is_client;
    };
    void step(const Ear *ear, uint32_t events, int64_t now_usec);
    // Standing still on purpose does not count against it.
    void forgive(int64_t usec) { progress_usec_ += usec; }

    bool over() const
    {
        return client_.opened() && !client_.is_open() && !server_.is_open() && (attached() || ended_alone_);
    }
    bool stuck(int64_t now_usec, int64_t limit_usec) const { return !over() && now_usec - progress_usec_ > limit_usec; }
    void give_up();
    // What went wrong, once it is over; empty for nothing.
    std::vector<std::string> faults() const;
    std::string state() const;
    uint64_t bytes() const { return client_.received() + server_.received(); }

private:
    void proceed_client();
    void proceed_server();
    void check(const End &from, const End &to, const char *way, uint64_t expected, bool eof_due,
               std::vector<std::string> &faults) const;

    const Plan plan_;
    End client_, server_;
    Ear client_ear_{this, true}, server_ear_{this, false};
    bool cut_;
    bool ended_alone_ = false; // the upstream will not hear of it any more
    int64_t progress_usec_;
    uint64_t progress_mark_ = 0;
};

} // namespace sluice::bench
