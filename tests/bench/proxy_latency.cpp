// SPDX-License-Identifier: LGPL-2.1-or-later

// Round trips of 64 bytes: how long they take, and how much CPU they cost beside
// connections that do nothing.

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "proxy_scenarios.hpp"

namespace sluice::bench {

namespace {

int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Quantiles of several stretches of a run, of which the median counts: what else the machine
// does for a moment spoils one of them and not the others.
class Samples {
public:
    static constexpr size_t stretches = 5;

    // For a run of so many seconds from now on.
    void begin(double seconds)
    {
        start_ns_ = now_ns();
        stretch_ns_ = int64_t(seconds * 1e9) / int64_t(stretches);
    }
    void add(int64_t now, int64_t ns)
    {
        ns_[std::min(stretches - 1, size_t((now - start_ns_) / stretch_ns_))].push_back(ns);
    }
    bool complete() const
    {
        return std::none_of(ns_.begin(), ns_.end(), [](const auto &stretch) { return stretch.empty(); });
    }
    double quantile_us(double part)
    {
        std::array<int64_t, stretches> of;
        for (size_t i = 0; i < stretches; ++i) {
            const auto at = ns_[i].begin() + ptrdiff_t(double(ns_[i].size() - 1) * part);
            std::nth_element(ns_[i].begin(), at, ns_[i].end());
            of[i] = *at;
        }
        std::sort(of.begin(), of.end());
        return double(of[stretches / 2]) / 1000;
    }

private:
    int64_t start_ns_ = 0, stretch_ns_ = 1;
    std::array<std::vector<int64_t>, stretches> ns_;
};

// A transfer that goes on beside the measurement, from the client to the upstream.
class Beside {
public:
    Beside(Bench &bench, uint64_t rate) : fd_(bench.connect()), rate_(rate), start_ns_(now_ns())
    {
        if (fd_)
            thread_ = std::thread([this] { run(); });
    }
    ~Beside() { stop(); }

    // How much it has moved, in MiB/s.
    double stop()
    {
        if (thread_.joinable()) {
            over_ = true;
            shutdown(fd_.get(), SHUT_RDWR);
            thread_.join();
            mib_per_s_ = double(bytes_) / double(1 << 20) / (double(now_ns() - start_ns_) / 1e9);
        }
        return mib_per_s_;
    }

private:
    void run()
    {
        yield_to_others();
        const Message ask{Ask::take_bulk_aside, UINT64_MAX};
        if (!send_all(fd_.get(), &ask, sizeof(ask)))
            return;
        while (!over_ && send_bulk(fd_.get(), bulk_block)) {
            bytes_ += bulk_block;
            const int64_t due_ns = rate_ == 0 ? 0 : start_ns_ + int64_t(double(bytes_) / double(rate_) * 1e9);
            if (due_ns > now_ns()) {
                const timespec due{due_ns / 1'000'000'000, due_ns % 1'000'000'000};
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
            }
        }
    }

    UniqueFd fd_;
    uint64_t rate_;
    int64_t start_ns_;
    uint64_t bytes_ = 0;
    double mib_per_s_ = 0;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

// One client, the next message as soon as the answer is there.
bool ping_pong(int fd, double seconds, Samples &samples)
{
    samples.begin(seconds);
    const Deadline deadline{seconds};
    while (!deadline.passed()) {
        const int64_t before = now_ns();
        if (!exchange(fd, Message{}))
            return false;
        const int64_t after = now_ns();
        samples.add(after, after - before);
    }
    return true;
}

// Many clients, whose messages come at a steady rate, from one after the other. A message
// whose client still waits for the last answer counts from when it was due.
class Paced {
public:
    Paced(std::vector<UniqueFd> &fds, double rate) : rate_(rate), epoll_(must(epoll_create1(EPOLL_CLOEXEC), "epoll"))
    {
        clients_.reserve(fds.size());
        for (UniqueFd &fd : fds) {
            set_nonblocking(fd.get());
            clients_.push_back({fd.get(), 0, 0, 0});
            epoll_event event{EPOLLIN, {.ptr = &clients_.back()}};
            must(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event), "epoll_ctl");
        }
    }

    bool run(double seconds, Samples &samples)
    {
        samples.begin(seconds);
        const int64_t start = now_ns(), end = start + int64_t(seconds * 1e9);
        const int64_t give_up = end + int64_t{20} * 1'000'000'000;
        int64_t now = start;
        std::array<epoll_event, 256> events;
        for (uint64_t sent = 0; now < give_up; now = now_ns()) {
            int64_t due = start + int64_t(double(sent) / rate_ * 1e9);
            for (; due <= now && due < end; due = start + int64_t(double(sent) / rate_ * 1e9)) {
                Client &client = clients_[sent++ % clients_.size()];
                if (client.since_ns != 0)
                    client.queued_ns = client.queued_ns == 0 ? due : client.queued_ns;
                else if (!ask(client, now))
                    return false;
            }
            if (now >= end && waiting_ == 0)
                return true;
            const int64_t wait = due < end ? std::max<int64_t>(0, due - now) : 1'000'000;
            const timespec timeout{wait / 1'000'000'000, wait % 1'000'000'000};
            const int count = epoll_pwait2(epoll_.get(), events.data(), int(events.size()), &timeout, nullptr);
            for (int i = 0; i < count; ++i)
                if (!take(*static_cast<Client *>(events[size_t(i)].data.ptr), samples))
                    return false;
        }
        return false;
    }

private:
    struct Client {
        int fd;
        int64_t since_ns;  // of the message whose answer is out; 0: none
        int64_t queued_ns; // when the next one was due meanwhile
        size_t received;
    };

    bool ask(Client &client, int64_t since)
    {
        const Message message;
        client.since_ns = since;
        client.received = 0;
        ++waiting_;
        return send(client.fd, &message, sizeof(message), MSG_NOSIGNAL) == ssize_t(sizeof(message));
    }

    bool take(Client &client, Samples &samples)
    {
        char answer[message_size];
        const ssize_t count = recv(client.fd, answer, message_size - client.received, 0);
        if (count < 0 && errno == EAGAIN)
            return true;
        if (count <= 0)
            return false;
        client.received += size_t(count);
        if (client.received < message_size)
            return true;
        const int64_t now = now_ns();
        samples.add(now, now - client.since_ns);
        client.since_ns = 0;
        --waiting_;
        const int64_t queued = std::exchange(client.queued_ns, 0);
        return queued == 0 || ask(client, queued);
    }

    double rate_;
    UniqueFd epoll_;
    std::vector<Client> clients_;
    size_t waiting_ = 0;
};

// Connections that have had one exchange each; as many as there can be.
void open_up_to(Bench &bench, size_t count, std::vector<UniqueFd> &into)
{
    while (into.size() < count) {
        UniqueFd fd = bench.connect();
        if (fd) {
            // one too many may simply be left waiting
            const timeval bound{3, 0};
            setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
        }
        if (!fd || !exchange(fd.get(), Message{}))
            return;
        into.push_back(std::move(fd));
    }
}

void keep(Figures &figures, const std::string &conditions, Samples &samples)
{
    if (!samples.complete())
        return;
    figures["median" + conditions] = samples.quantile_us(0.5);
    figures["p99" + conditions] = samples.quantile_us(0.99);
}

} // namespace

Figures measure_latency(const Contestant &contestant, Path path, const Load &load)
{
    Figures figures;
    Bench bench(contestant, path, load.everywhere ? Cores::any : Cores::one);
    if (!bench.ready())
        return figures;
    for (const bool beside : {false, true}) {
        const std::string suffix = beside ? "-beside" : "";
        const UniqueFd single = bench.connect();
        std::vector<UniqueFd> many;
        open_up_to(bench, size_t(load.latency_clients), many);
        std::optional<Beside> transfer;
        if (beside) {
            bench.place(load.everywhere ? Cores::any : Cores::apart);
            transfer.emplace(bench, load.beside_rate);
        }
        Samples of_one, of_many;
        if (single && exchange(single.get(), Message{}) && ping_pong(single.get(), load.latency_s, of_one))
            keep(figures, "-1" + suffix, of_one);
        if (many.size() == size_t(load.latency_clients) && Paced(many, load.latency_rate).run(load.latency_s, of_many))
            keep(figures, "-many" + suffix, of_many);
        if (transfer)
            figures["rate-beside"] = transfer->stop();
    }
    return figures;
}

Figures measure_idle(const Contestant &contestant, Path path, const Load &load)
{
    Figures figures;
    Bench bench(contestant, path, load.everywhere ? Cores::any : Cores::one);
    if (!bench.ready())
        return figures;
    const UniqueFd active = bench.connect();
    std::vector<UniqueFd> idle;
    const auto trip_cpu_us = [&](int trips) {
        const double before = bench.subject().cpu_s();
        for (int i = 0; i < trips; ++i)
            if (!active || !exchange(active.get(), Message{}))
                return std::nan("");
        return (bench.subject().cpu_s() - before) * 1e6 / trips;
    };
    trip_cpu_us(200); // whatever a proxy makes at the first messages, it has now
    const double memory_before = double(bench.subject().memory_bytes());
    const double fds_before = double(bench.subject().descriptors());
    std::map<int, double> costs;
    for (const int count : {0, load.idle_few, load.idle_clients}) {
        open_up_to(bench, size_t(count), idle);
        if (idle.size() != size_t(count))
            break;
        costs[count] = trip_cpu_us(load.idle_round_trips);
    }
    figures["idle-reached"] = double(idle.size());
    if (!contestant.is_proxy() || idle.empty())
        return figures;
    figures["idle-memory"] = (double(bench.subject().memory_bytes()) - memory_before) / double(idle.size());
    figures["idle-fds"] = (double(bench.subject().descriptors()) - fds_before) / double(idle.size());
    for (const auto &[count, cost] : costs)
        if (!std::isnan(cost))
            figures[count == 0 ? "trip-alone" : count == load.idle_few ? "trip-few" : "trip-idle"] = cost;
    if (figures.contains("trip-alone") && figures.contains("trip-idle"))
        figures["flat"] = figures["trip-idle"] / figures["trip-alone"];
    return figures;
}

} // namespace sluice::bench
