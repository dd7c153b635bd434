// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Both ends of what is being tested, driven by one poll loop in one thread: Feeds
// write a Pattern, Drains read and check one. Descriptors are borrowed and made
// non-blocking, so give it ends whose file description is not shared with the child.
//
//     Traffic traffic;
//     Feed &up = traffic.feed(stdin_end, size);
//     Drain &arrived = traffic.drain(server, up.pattern);
//     up.when_done = [&] { stdin_end.reset(); };
//     EXPECT_TRUE(traffic.run_until([&] { return arrived.done; }));
//     EXPECT_EQ(arrived.bytes, size);

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "channels.hpp"
#include "pattern.hpp"

namespace sluice::test {

// How an end moves its bytes: `chunk_max` at most in one call, a random part of that
// if `vary`; and a pause of up to `pause_us_max` after every `pause_every` bytes or
// so, at most `pauses_left` times.
struct Pace {
    size_t chunk_max = 256 * 1024;
    bool vary = false;
    uint64_t pause_every = 0;
    int pause_us_max = 0;
    int pauses_left = 0;
    std::minstd_rand random{1};

    size_t next_chunk() { return vary ? 1 + random() % chunk_max : chunk_max; }
};

// What Feed and Drain have in common. Fields may be read and set between turns.
class Flow {
public:
    Flow(int fd_, Pattern pattern_) : fd(fd_), pattern(pattern_) { set_nonblocking(fd); }
    virtual ~Flow() = default;
    Flow(const Flow &) = delete;
    Flow &operator=(const Flow &) = delete;

    int fd; // -1 once the test has closed it
    Pattern pattern;
    Pace pace;
    uint64_t bytes = 0;              // moved so far
    bool done = false;               // the last byte is written, or EOF read
    bool blocked = false;            // no room to write to, or nothing to read, when last looked at
    bool paused = false;             // left alone while set
    int error = 0;                   // errno of the call that failed; nothing moves after that
    std::function<void()> when_done; // called once

protected:
    virtual short events() const = 0;
    virtual void step(std::vector<std::byte> &buffer) = 0;

    void finish()
    {
        done = true;
        if (when_done)
            std::exchange(when_done, nullptr)();
    }

    // Take the result of read() or write(); false when nothing moved.
    bool take(ssize_t count)
    {
        blocked = count < 0 && (errno == EAGAIN || errno == EINTR);
        if (count < 0 && !blocked)
            error = errno;
        if (count <= 0)
            return false;
        const uint64_t before = std::exchange(bytes, bytes + uint64_t(count));
        if (pace.pauses_left > 0 && pace.pause_every > 0 && before / pace.pause_every != bytes / pace.pause_every) {
            --pace.pauses_left;
            not_before_usec_ = monotonic_usec() + int64_t(pace.random() % unsigned(pace.pause_us_max + 1));
        }
        return true;
    }

private:
    friend class Traffic;
    int64_t not_before_usec_ = 0;
};

class Feed : public Flow {
public:
    Feed(int fd_, Pattern pattern_, uint64_t total_) : Flow(fd_, pattern_), total(total_) {}

    uint64_t total;

protected:
    short events() const override { return POLLOUT; }

    void step(std::vector<std::byte> &buffer) override
    {
        const size_t chunk = size_t(std::min<uint64_t>(pace.next_chunk(), total - bytes));
        if (chunk > 0) {
            buffer.resize(std::max(buffer.size(), chunk));
            pattern.fill(bytes, {buffer.data(), chunk});
            if (!take(write(fd, buffer.data(), chunk)))
                return;
        }
        if (bytes == total)
            finish();
    }
};

class Drain : public Flow {
public:
    using Flow::Flow;

    bool intact = true;          // every byte so far was the one that belongs there
    uint64_t damaged_at = 0;     // where the first was not
    std::string *keep = nullptr; // bytes are kept there instead of checked

protected:
    short events() const override { return POLLIN; }

    void step(std::vector<std::byte> &buffer) override
    {
        const size_t chunk = pace.next_chunk();
        buffer.resize(std::max(buffer.size(), chunk));
        const uint64_t offset = bytes;
        const ssize_t count = read(fd, buffer.data(), chunk);
        if (count == 0)
            return finish();
        if (!take(count))
            return;
        const std::span<const std::byte> data{buffer.data(), size_t(count)};
        if (keep)
            keep->append(reinterpret_cast<const char *>(data.data()), data.size());
        else if (const auto at = intact ? pattern.first_difference(offset, data) : std::nullopt) {
            intact = false;
            damaged_at = offset + *at;
        }
    }
};

class Traffic {
public:
    // What is written to a closed end is an error to look at, not the end of the test.
    Traffic() { signal(SIGPIPE, SIG_IGN); }

    Feed &feed(int fd, uint64_t total, Pattern pattern = Pattern{})
    {
        auto flow = std::make_unique<Feed>(fd, pattern, total);
        Feed &result = *flow;
        flows_.push_back(std::move(flow));
        return result;
    }

    Drain &drain(int fd, Pattern pattern = Pattern{})
    {
        auto flow = std::make_unique<Drain>(fd, pattern);
        Drain &result = *flow;
        flows_.push_back(std::move(flow));
        return result;
    }

    // Close a descriptor that flows may be using.
    void close(UniqueFd &fd)
    {
        for (const auto &flow : flows_)
            if (flow->fd == fd.get())
                flow->fd = -1;
        fd.reset();
    }

    // Move bytes until the predicate holds; false when it does not by the deadline. It
    // is looked at every few milliseconds even when nothing moves.
    bool run_until(const std::function<bool()> &predicate, const Deadline &deadline = Deadline{})
    {
        while (!predicate()) {
            if (deadline.passed())
                return false;
            turn(deadline);
        }
        return true;
    }

private:
    static constexpr int64_t look_again_usec = 5000;

    void turn(const Deadline &deadline)
    {
        polled_.clear();
        movers_.clear();
        int64_t wait_usec = std::min(deadline.left_usec(), look_again_usec);
        const int64_t now = monotonic_usec();
        for (const auto &flow : flows_) {
            if (flow->fd < 0 || flow->done || flow->paused || flow->error != 0)
                continue;
            if (flow->not_before_usec_ > now) {
                wait_usec = std::min(wait_usec, flow->not_before_usec_ - now);
                continue;
            }
            polled_.push_back({flow->fd, flow->events(), 0});
            movers_.push_back(flow.get());
        }
        const int ready = poll(polled_.data(), polled_.size(), int((wait_usec + 999) / 1000));
        if (ready < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "poll");
        for (size_t i = 0; ready >= 0 && i < polled_.size(); ++i) {
            movers_[i]->blocked = polled_[i].revents == 0;
            // a step before this one may have closed the descriptor
            if (polled_[i].revents != 0 && movers_[i]->fd >= 0)
                movers_[i]->step(buffer_);
        }
    }

    std::vector<std::unique_ptr<Flow>> flows_;
    std::vector<pollfd> polled_;
    std::vector<Flow *> movers_;
    std::vector<std::byte> buffer_;
};

} // namespace sluice::test
