// SPDX-License-Identifier: LGPL-2.1-or-later

// The reference: a level-triggered epoll loop with nothing around it. It keeps no
// timers and cannot be changed from other threads, so it is a lower bound.

#include "loop_bench.hpp"

#include <cerrno>
#include <sys/epoll.h>

namespace loop_bench {
namespace {

struct Watch {
    bool (*ready)(Slot *slot);
    Slot *slot;
};

class Bare final : public Contestant {
public:
    Bare() : epoll_(epoll_create1(EPOLL_CLOEXEC))
    {
        if (epoll_ < 0)
            die("epoll_create1", errno);
    }
    ~Bare() override { close(epoll_); }

    void watch(std::span<Slot> slots) override
    {
        watches_.reserve(slots.size());
        for (Slot &slot : slots) {
            watches_.push_back({pass_token, &slot});
            control(EPOLL_CTL_ADD, watches_.back(), EPOLLIN);
        }
    }
    void unwatch() override
    {
        for (Watch &watch : watches_)
            control(EPOLL_CTL_DEL, watch, 0);
        watches_.clear();
    }
    void run() override
    {
        for (done_ = false; !done_;)
            poll_once(-1);
    }
    void turn() override { poll_once(0); }
    void toggle() override
    {
        for (Watch &watch : watches_) {
            control(EPOLL_CTL_MOD, watch, 0);
            control(EPOLL_CTL_MOD, watch, EPOLLIN);
        }
    }

private:
    void control(int operation, Watch &watch, uint32_t events)
    {
        epoll_event event = {events, {&watch}};
        if (epoll_ctl(epoll_, operation, watch.slot->fd, &event) < 0)
            die("epoll_ctl", errno);
    }
    void poll_once(int timeout)
    {
        epoll_event events[256];
        int count = epoll_wait(epoll_, events, 256, timeout);
        for (int i = 0; i < count; i++) {
            auto *watch = static_cast<Watch *>(events[i].data.ptr);
            done_ |= watch->ready(watch->slot);
        }
    }

    int epoll_;
    bool done_ = false;
    std::vector<Watch> watches_;
};

} // namespace

std::unique_ptr<Contestant> make_bare()
{
    return std::make_unique<Bare>();
}

} // namespace loop_bench
