// SPDX-License-Identifier: LGPL-2.1-or-later

// A proxy that is ready; bulk transfers through it, and connections that come and go.

#include <sched.h>

#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "proxy_scenarios.hpp"
#include "util/base/clock.hpp"

namespace sluice::bench {

namespace {

std::vector<int> allowed_cores()
{
    static const std::vector<int> cores = [] {
        cpu_set_t set;
        must(sched_getaffinity(0, sizeof(set), &set), "sched_getaffinity");
        std::vector<int> found;
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &set))
                found.push_back(core);
        return found;
    }();
    return cores;
}

// All threads that a process has now; those that they start inherit it.
void put_on(pid_t pid, const std::vector<int> &cores)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores)
        CPU_SET(core, &set);
    std::error_code gone;
    for (const auto &task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone))
        sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof(set), &set);
}

} // namespace

Bench::Bench(const Contestant &contestant, Path path, Cores cores)
    : backend_(Endpoint::unused(path.upstream, folder_ / "upstream")),
      subject_(std::make_unique<Subject>(contestant, path, backend_.endpoint()))
{
    ready_ = eventually(
        [&] {
            const UniqueFd fd = connect();
            return (fd && exchange(fd.get(), Message{})) || !subject_->alive();
        },
        Deadline{10});
    ready_ = ready_ && subject_->alive();
    if (!ready_)
        fmt::print(stderr, "proxy-bench: {} does not work on {}: {}\n", contestant.name, path.name(),
                   subject_->alive() ? "no answer comes through" : subject_->errors());
    place(cores);
}

Bench::~Bench()
{
    put_on(getpid(), allowed_cores());
}

void Bench::place(Cores cores)
{
    std::vector<int> ours = allowed_cores(), theirs = ours;
    if (cores != Cores::any)
        theirs.resize(1);
    if (cores == Cores::one)
        ours.resize(1);
    else if (cores == Cores::apart && ours.size() > 1)
        ours.erase(ours.begin());
    put_on(getpid(), ours);
    for (const pid_t pid : subject_->processes())
        put_on(pid, theirs);
}

UniqueFd Bench::connect() const
{
    UniqueFd fd = try_connect(endpoint());
    if (fd) {
        const timeval bound{20, 0};
        setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
        setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
    }
    return fd;
}

namespace {

constexpr double gib = double(uint64_t{1} << 30);

// Wall and CPU seconds of one transfer, or nothing when it did not complete.
std::optional<std::pair<double, double>> transfer(Bench &bench, bool up, uint64_t bytes)
{
    const UniqueFd fd = bench.connect();
    // the connection is there and the first exchange is behind us
    if (!fd || !exchange(fd.get(), Message{}))
        return std::nullopt;
    const Message ask{up ? Ask::take_bulk : Ask::send_bulk, bytes, 1};
    const double cpu_before = bench.subject().cpu_s();
    const int64_t start = monotonic_usec();
    bool complete = send_all(fd.get(), &ask, sizeof(ask));
    if (up) {
        Message answer;
        complete = complete && send_bulk(fd.get(), bytes) && receive_all(fd.get(), &answer, sizeof(answer)) &&
                   std::memcmp(&answer, &ask, sizeof(ask)) == 0;
    } else {
        complete = complete && receive_bulk(fd.get(), bytes);
    }
    const double wall = double(monotonic_usec() - start) / 1e6;
    const double cpu = bench.subject().cpu_s() - cpu_before;
    return complete ? std::optional(std::pair(wall, cpu)) : std::nullopt;
}

} // namespace

Figures measure_bulk(const Contestant &contestant, Path path, const Load &load)
{
    Figures figures;
    Bench bench(contestant, path, Cores::any);
    if (!bench.ready())
        return figures;
    for (const Cores cores : {Cores::apart, Cores::one}) {
        bench.place(load.everywhere ? Cores::any : cores);
        for (const bool up : {true, false}) {
            const std::string way = std::string(up ? "-up" : "-down") + (cores == Cores::one ? "-one" : "");
            const auto cost = transfer(bench, up, load.bytes);
            if (!cost)
                continue;
            figures["wall" + way] = cost->first * gib / double(load.bytes);
            if (contestant.is_proxy())
                figures["cpu" + way] = cost->second * gib / double(load.bytes);
        }
        if (load.everywhere)
            break;
    }
    if (load.trace_bytes == 0 || !contestant.is_proxy())
        return figures;
    bench.place(Cores::any);
    for (const bool up : {true, false}) {
        Trace trace(bench.subject());
        const bool complete = transfer(bench, up, load.trace_bytes).has_value();
        if (const auto calls = trace.finish(); calls && complete)
            figures[up ? "calls-up" : "calls-down"] = *calls * gib / double(load.trace_bytes);
    }
    return figures;
}

namespace {

// Clients that connect, ask once, read the answer and the end, close, and begin again.
class Churn {
public:
    explicit Churn(const Endpoint &endpoint)
        : endpoint_(endpoint), epoll_(must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"))
    {}

    void run(int clients, double seconds)
    {
        clients_.resize(size_t(clients));
        for (Client &client : clients_)
            begin(client);
        const Deadline deadline{seconds};
        std::array<epoll_event, 64> events;
        while (!deadline.passed() && failed < failures_max) {
            const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), waiting_ ? 1 : 100);
            for (int i = 0; i < count; ++i)
                step(*static_cast<Client *>(events[size_t(i)].data.ptr), events[size_t(i)].events);
            if (waiting_)
                begin_waiting();
        }
    }

    static constexpr uint64_t failures_max = 1000;
    uint64_t completed = 0;
    uint64_t failed = 0;

private:
    struct Client {
        UniqueFd fd;
        bool asked = false;
        size_t received = 0;
    };

    void begin(Client &client)
    {
        client.asked = false;
        client.received = 0;
        client.fd = make_socket(endpoint_, SOCK_NONBLOCK);
        if (::connect(client.fd.get(), endpoint_.sockaddr_ptr(), endpoint_.size) != 0 && errno != EINPROGRESS) {
            // a unix listener whose backlog is full says EAGAIN
            failed += errno != EAGAIN;
            client.fd.reset();
            waiting_ = true;
            return;
        }
        epoll_event event{EPOLLIN | EPOLLOUT | EPOLLET, {.ptr = &client}};
        must(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client.fd.get(), &event), "epoll_ctl");
    }

    void begin_waiting()
    {
        waiting_ = false;
        for (Client &client : clients_)
            if (!client.fd)
                begin(client);
    }

    void step(Client &client, uint32_t events)
    {
        if (!client.asked && (events & EPOLLOUT) != 0) {
            const Message ask{Ask::last};
            client.asked = send(client.fd.get(), &ask, sizeof(ask), MSG_NOSIGNAL) == ssize_t(sizeof(ask));
            if (!client.asked)
                return end(client, false);
        }
        if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0)
            return;
        for (;;) {
            char answer[message_size];
            const ssize_t count = recv(client.fd.get(), answer, sizeof(answer), 0);
            if (count < 0 && errno == EAGAIN)
                return;
            if (count <= 0)
                return end(client, count == 0 && client.received == message_size);
            client.received += size_t(count);
        }
    }

    void end(Client &client, bool complete)
    {
        ++(complete ? completed : failed);
        client.fd.reset();
        begin(client);
    }

    const Endpoint &endpoint_;
    UniqueFd epoll_;
    std::vector<Client> clients_;
    bool waiting_ = false;
};

} // namespace

Figures measure_churn(const Contestant &contestant, Path path, const Load &load)
{
    Figures figures;
    Bench bench(contestant, path, load.everywhere ? Cores::any : Cores::one);
    if (!bench.ready())
        return figures;
    Churn(bench.endpoint()).run(load.churn_clients, 0.2);
    Churn churn(bench.endpoint());
    const double cpu_before = bench.subject().cpu_s();
    const int64_t start = monotonic_usec();
    churn.run(load.churn_clients, load.churn_s);
    const double wall = double(monotonic_usec() - start) / 1e6;
    const double cpu = bench.subject().cpu_s() - cpu_before;
    if (churn.failed > 0)
        fmt::print(stderr, "proxy-bench: {} on {}: {} of {} connections failed\n", contestant.name, path.name(),
                   churn.failed, churn.failed + churn.completed);
    if (churn.failed > churn.completed / 100 || churn.completed == 0)
        return figures;
    figures["connections"] = double(churn.completed) / wall;
    if (contestant.is_proxy())
        figures["connection-cpu"] = cpu * 1000 / (double(churn.completed) / 1000);
    return figures;
}

} // namespace sluice::bench
