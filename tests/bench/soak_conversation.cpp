// SPDX-License-Identifier: LGPL-2.1-or-later

#include "soak_conversation.hpp"

#include <cstring>

namespace sluice::bench {

Conversation::Conversation(int epoll, const Plan &plan, uint64_t seed, int64_t now_usec)
    : plan_(plan), client_(epoll, &client_ear_, plan.client_sends, plan.client_receives, Pattern{seed + 2 * plan.id},
                           Pattern{seed + 2 * plan.id + 1}, plan.ending == Ending::says_nothing ? 0 : plan.up),
      server_(epoll, &server_ear_, plan.server_sends, plan.server_receives, Pattern{seed + 2 * plan.id + 1},
              Pattern{seed + 2 * plan.id}, plan.down),
      cut_(bench::is_cut(plan.ending)), progress_usec_(now_usec)
{
    std::array<std::byte, Plan::header_bytes> header;
    std::memcpy(header.data(), &plan.id, header.size());
    client_.send_header(header);
    if (plan.ending == Ending::server_first)
        client_.limit_sending(Plan::header_bytes);
    if (plan.ending == Ending::client_first)
        server_.limit_sending(0);
}

void Conversation::start(UniqueFd client)
{
    client_.open(std::move(client), plan_);
    if (plan_.ending == Ending::says_nothing) {
        client_.close();
        ended_alone_ = true;
    }
}

void Conversation::attach(UniqueFd server)
{
    server_.open(std::move(server), plan_);
    server_.header_was_read();
}

void Conversation::upstream_died()
{
    cut();
    server_.close();
    ended_alone_ = true;
}

void Conversation::step(const Ear *ear, uint32_t events, int64_t now_usec)
{
    if (ear)
        (ear->is_client ? client_ : server_).step(now_usec, events);
    proceed_client();
    proceed_server();
    client_.arm(now_usec);
    server_.arm(now_usec);
    const uint64_t mark = client_.sent() + client_.received() + server_.sent() + server_.received() +
                          (uint64_t{client_.at_eof()} << 60) + (uint64_t{server_.at_eof()} << 61);
    if (mark != progress_mark_) {
        progress_mark_ = mark;
        progress_usec_ = now_usec;
    }
}

void Conversation::proceed_client()
{
    if (!client_.is_open())
        return;
    const bool cuts = plan_.ending == Ending::client_resets || plan_.ending == Ending::client_leaves;
    if (cuts && client_.sent() + client_.received() >= plan_.cut_at) {
        if (!attached())
            ended_alone_ = true; // whether its number ever arrives, is open
        return plan_.ending == Ending::client_resets ? client_.reset() : client_.close();
    }
    // one whose upstream has died may have nothing but an end or an error to hear
    if (client_.error() != 0 || (cut_ && client_.at_eof())) {
        ended_alone_ = ended_alone_ || !attached();
        return client_.close();
    }
    if (client_.at_eof())
        client_.limit_sending(plan_.up);
    if (client_.all_sent()) {
        if (plan_.ending == Ending::client_closes)
            return client_.close();
        if (plan_.ending != Ending::server_closes)
            client_.half_close();
    }
    if (client_.at_eof() && (client_.half_closed() || plan_.ending == Ending::server_closes))
        client_.close();
}

void Conversation::proceed_server()
{
    if (!server_.is_open())
        return;
    if (plan_.ending == Ending::server_resets && server_.sent() + server_.received() >= plan_.cut_at)
        return server_.reset();
    if (server_.error() != 0 || (cut_ && server_.at_eof()))
        return server_.close();
    if (server_.at_eof())
        server_.limit_sending(plan_.down);
    if (server_.all_sent()) {
        if (plan_.ending != Ending::server_closes && (plan_.ending != Ending::client_first || server_.at_eof()))
            server_.half_close();
        if (plan_.ending == Ending::server_closes && server_.received() == plan_.up)
            return server_.close();
    }
    if (server_.at_eof() && server_.half_closed())
        server_.close();
}

void Conversation::give_up()
{
    client_.reset();
    server_.reset();
    ended_alone_ = true;
}

void Conversation::check(const End &from, const End &to, const char *way, uint64_t expected, bool eof_due,
                         std::vector<std::string> &faults) const
{
    if (to.damaged_at())
        faults.push_back(fmt::format("damaged: {} at byte {}", way, *to.damaged_at()));
    if (to.received() > from.sent())
        faults.push_back(fmt::format("invented: {} {} bytes arrived of {} sent", way, to.received(), from.sent()));
    if (cut_)
        return;
    if (to.received() != expected)
        faults.push_back(
            fmt::format("lost: {} {} of {} bytes arrived, {} were sent", way, to.received(), expected, from.sent()));
    else if (eof_due && !to.at_eof())
        faults.push_back(fmt::format("lost: the end of {}", way));
    if (to.error() != 0)
        faults.push_back(fmt::format("error: the receiver of {}: {}", way, std::strerror(to.error())));
}

std::vector<std::string> Conversation::faults() const
{
    std::vector<std::string> faults;
    if (plan_.ending == Ending::says_nothing)
        return faults;
    check(client_, server_, "up", plan_.up, plan_.ending != Ending::server_closes, faults);
    check(server_, client_, "down", plan_.down, plan_.ending != Ending::client_closes, faults);
    return faults;
}

std::string Conversation::state() const
{
    const auto text = [](const End &end) {
        return fmt::format("sent {}, received {}{}{}{}{}", end.sent(), end.received(),
                           end.half_closed() ? ", half-closed" : "", end.at_eof() ? ", at EOF" : "",
                           end.is_open() ? "" : ", closed",
                           end.error() ? fmt::format(", {}", std::strerror(end.error())) : "");
    };
    return fmt::format("client: {}; server: {}{}", text(client_), attached() ? text(server_) : "none",
                       cut_ ? "; cut" : "");
}

} // namespace sluice::bench
